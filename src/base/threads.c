#include "base/threads.h"

#include <omp.h>

void lp_threads_run(int threads, int count, lp_task task, void *context)
{
    if (threads > count)
        threads = count;
    if (threads <= 1) {
        for (int i = 0; i < count; i++)
            task(context, i, 0);
        return;
    }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
    for (int i = 0; i < count; i++)
        task(context, i, omp_get_thread_num());
}

int lp_threads_available(void)
{
    return omp_get_num_procs();
}
