/* threads.c: OpenMP's teams, but our own way of handing out tasks: a loop that OpenMP schedules allocates memory at every start
 * with some compilers. The team is as large as asked for even where there are fewer tasks, because a team that shrinks
 * ends threads, which the next larger one has to start again. */
#include "base/threads.h"

#include <omp.h>
#include <stdatomic.h>

void lp_threads_run(int threads, int count, lp_task task, void *context)
{
    if (threads <= 1 || count <= 1) {
        for (int i = 0; i < count; i++)
            task(context, i, 0);
        return;
    }
    _Atomic int next = 0;
#pragma omp parallel num_threads(threads)
    {
        int worker = omp_get_thread_num();
        if (worker < count)
            for (int i = atomic_fetch_add(&next, 1); i < count; i = atomic_fetch_add(&next, 1))
                task(context, i, worker);
    }
}

int lp_threads_available(void)
{
    return omp_get_num_procs();
}
