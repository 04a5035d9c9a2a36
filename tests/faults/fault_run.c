/* fault_run.c: runs the tool with the Nth call of each group failing, for every N, and checks what each run leaves.
 *
 *   build/faults [--stride K] [--jobs J] [--seed S] FILES [CASE...]
 *
 * FILES is the folder of the CSV files. With a stride of K, every Kth N is tested, from a random one on. A run ends in one
 * of two ways. Exit status 0: all results are those of the undisturbed run (the tool could do without the call). Exit
 * status 1: the last line on standard error says what is wrong, and every file is as it was before. In both cases all
 * memory and descriptors are freed, inputs are unchanged, and no temporary file is left.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "fault_run.h"

#include "base/random.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CASES = 128, MAX_TESTS = 4096, CHUNK = 64, SHOWN = 2 };

static case_state cases[MAX_CASES];
static int case_count;
static char base[300]; /* folder with the inputs, and a folder for each worker */

/* --------------------------------------------------------------------------------------------------- report ------ */

/* Prints the functions of this program on a stack. */
static void print_trace(const fault_trace *trace)
{
    char command[2000];
    Dl_info own, info;
    int used = snprintf(command, sizeof command, "addr2line -sfpe /proc/%d/exe", (int)getpid());
    if (!dladdr((void *)(uintptr_t)lapse_main, &own))
        return;
    for (int i = 0; i < trace->depth && used < (int)sizeof command - 40; i++)
        if (dladdr(trace->frames[i], &info) && info.dli_fbase == own.dli_fbase)
            used += snprintf(command + used, sizeof command - (size_t)used, " %#zx",
                             (size_t)trace->frames[i] - (size_t)own.dli_fbase - 1);
    FILE *lines = popen(command, "r");
    char line[300];
    while (lines && fgets(line, sizeof line, lines))
        if (!strstr(line, "fault_calls.c") && !strstr(line, "fault_run.c"))
            printf("      %s", line);
    if (lines)
        pclose(lines);
}

static const char *const effect_names[FAULT_EFFECTS] = {"", " and later", " short", " interrupted"};

/* One test: a case, a group of calls and an effect, for all N. */
typedef struct test {
    int c;
    fault_call call;
    fault_effect effect;
    int64_t first, stride, last;
} test;

typedef struct chunk {
    int test;
    int64_t first, last;
} chunk;

static struct shared {
    _Atomic int next;
    _Atomic int64_t runs;
    _Atomic int failed[MAX_TESTS];
} * shared;

static test tests[MAX_TESTS];
static chunk *chunks;
static int test_count, chunk_count;

static void complain(const test *t, run *r, const char *folder, int64_t at)
{
    const case_state *s = &cases[t->c];
    printf("FAILED %s: %s %lld%s: %s\n   lapse %s\n", s->c->name, fault_call_name(t->call), (long long)at,
           effect_names[t->effect], fault_complaint, s->c->arguments);
    print_trace(&r->control->where);
    if (!r->control->completed) { /* the report of a sanitizer */
        content messages = content_of_handle(r->messages);
        printf("%.4000s\n", messages.data);
        content_free(&messages);
    }
    if (r->control->leaked > 0) {
        run_plan(r, t->call, t->effect, at, true);
        run_tool(r, folder, s->c, s->c->arguments, "");
        for (int i = 0; i < r->control->leaked && i < FAULT_LEAKS; i++) {
            printf("   not freed: %zu bytes of\n", r->control->leak_sizes[i]);
            print_trace(&r->control->leaks[i]);
        }
        case_check(s, r, folder);
    }
    fflush(stdout);
}

static void work(int worker)
{
    run r;
    char mine[320];
    bool prepared[MAX_CASES] = {false};
    run_init(&r);
    snprintf(mine, sizeof mine, "%s/worker%d", base, worker);
    if (mkdir(mine, 0777) != 0)
        fault_stop(mine);
    for (int i = atomic_fetch_add(&shared->next, 1); i < chunk_count; i = atomic_fetch_add(&shared->next, 1)) {
        const test *t = &tests[chunks[i].test];
        char name[16];
        snprintf(name, sizeof name, "case%d", t->c);
        path folder = path_in(mine, name);
        if (!prepared[t->c])
            case_prepare(&cases[t->c], base, folder.text);
        prepared[t->c] = true;
        for (int64_t n = chunks[i].first; n <= chunks[i].last; n += t->stride) {
            run_plan(&r, t->call, t->effect, n, false);
            run_tool(&r, folder.text, cases[t->c].c, cases[t->c].c->arguments, "");
            atomic_fetch_add(&shared->runs, 1);
            if (!case_check(&cases[t->c], &r, folder.text) &&
                atomic_fetch_add(&shared->failed[chunks[i].test], 1) < SHOWN)
                complain(t, &r, folder.text, n);
        }
    }
    exit(0);
}

/* ----------------------------------------------------------------------------------------------------- plan ------ */

static void add_test(int c, fault_call call, fault_effect effect, int64_t stride, lp_random *random)
{
    static int capacity;
    int64_t last = cases[c].counts[call];
    if (last == 0 || test_count == MAX_TESTS)
        return;
    int64_t first = 1 + (int64_t)lp_random_below(random, (uint32_t)(stride < last ? stride : last));
    tests[test_count] = (test){c, call, effect, first, stride, last};
    for (int64_t at = first; at <= last; at += CHUNK * stride) {
        if (chunk_count == capacity) {
            capacity = 2 * capacity + 64;
            chunks = realloc(chunks, (size_t)capacity * sizeof *chunks);
        }
        int64_t end = at + (CHUNK - 1) * stride;
        chunks[chunk_count++] = (chunk){test_count, at, end < last ? end : last};
    }
    test_count++;
}

/* Every group of calls fails once and for good; writes and reads also transfer less, or are interrupted. */
static void add_tests(int c, int64_t stride, lp_random *random)
{
    int64_t cost = cases[c].c->cost ? cases[c].c->cost : 1;
    for (fault_call call = 0; call < FAULT_CALLS; call++) {
        int64_t step = call == FAULT_ALLOCATE ? stride * cost : 1 + (stride * cost - 1) / 8;
        add_test(c, call, FAULT_ONCE, step, random);
        add_test(c, call, FAULT_FROM, call == FAULT_ALLOCATE ? 4 * step : step, random);
        if (call == FAULT_READ || call == FAULT_WRITE) {
            add_test(c, call, FAULT_SHORT, step, random);
            add_test(c, call, FAULT_INTERRUPT, step, random);
        }
    }
}

static void make_inputs(const char *files, run *r)
{
    static const char *const names[] = {"events.csv",         "fields.csv",  "repeats.csv", "history.csv",
                                        "fields_history.csv", "strange.csv", "plan.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        content text = content_of(path_in(files, names[i]).text);
        if (!text.data)
            fault_stop(path_in(files, names[i]).text);
        content_write(&text, path_in(base, names[i]).text);
        content_free(&text);
    }
    char command[800];
    snprintf(command, sizeof command, "gzip -c '%s/events.csv' >'%s/events.csv.gz'", base, base);
    if (system(command) != 0)
        fault_stop("gzip");
    for (int i = 0; fault_setup[i]; i++) {
        run_plan(r, FAULT_ALLOCATE, FAULT_ONCE, 0, false);
        run_tool(r, base, NULL, fault_setup[i], "");
        content messages = content_of_handle(r->messages);
        if (r->status != 0) {
            fprintf(stderr, "faults: lapse %s: %s\n", fault_setup[i], messages.data);
            exit(2);
        }
        content_free(&messages);
    }
}

/* A run whose model cannot be renamed leaves a checkpoint: the input of a resumed run. */
static void make_checkpoint(const fault_case *resumed, run *r)
{
    char arguments[1000];
    const char *option = strstr(resumed->arguments, " --resume");
    snprintf(arguments, sizeof arguments, "%.*s%s", (int)(option - resumed->arguments), resumed->arguments,
             option + strlen(" --resume"));
    run_plan(r, FAULT_LINK, FAULT_ONCE, 0, false);
    run_tool(r, base, NULL, arguments, "");
    run_plan(r, FAULT_LINK, FAULT_ONCE, r->control->counts[FAULT_LINK], false);
    run_tool(r, base, NULL, arguments, "");
    if (access(path_in(base, resumed->checkpoint).text, F_OK) != 0)
        fault_stop("no checkpoint was left");
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool is_wanted(const char *name, int count, char **wanted)
{
    for (int i = 0; i < count; i++)
        if (strcmp(name, wanted[i]) == 0)
            return true;
    return count == 0;
}

static void make_base(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(base, sizeof base, "%s/lapse-faults-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(base))
        fault_stop(base);
}

int main(int count, char **arguments)
{
    int64_t stride = 1, jobs = 2, seed = time(NULL) % 1000000;
    int at = 1, failed = 0;
    for (; at + 1 < count && strncmp(arguments[at], "--", 2) == 0; at += 2) {
        int64_t value = strtoll(arguments[at + 1], NULL, 10);
        *(strcmp(arguments[at], "--stride") == 0 ? &stride
          : strcmp(arguments[at], "--jobs") == 0 ? &jobs
                                                 : &seed) = value;
    }
    if (at >= count || stride < 1 || jobs < 1) {
        fprintf(stderr, "usage: faults [--stride K] [--jobs J] [--seed S] FILES [CASE...]\n");
        return 2;
    }
    double start = seconds_now();
    lp_random random = lp_random_start((uint64_t)seed, 0, 0);
    run r;
    run_init(&r);
    make_base();
    make_inputs(arguments[at], &r);
    printf("seed %lld, stride %lld\n", (long long)seed, (long long)stride);
    for (int i = 0; fault_cases[i].name; i++) {
        const fault_case *c = &fault_cases[i];
        if (!is_wanted(c->name, count - at - 1, arguments + at + 1))
            continue;
        if (c->checkpoint && strstr(c->arguments, "--resume"))
            make_checkpoint(c, &r);
        cases[case_count].c = c;
        failed += !case_reference(&cases[case_count], &r, base);
        add_tests(case_count++, stride, &random);
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        fault_stop("mmap");
    fflush(stdout);
    for (int i = 0; i < jobs; i++) {
        pid_t worker = fork();
        if (worker == 0)
            work(i);
    }
    for (int i = 0, status; i < jobs; i++) {
        wait(&status);
        failed += status != 0;
    }
    remove_tree(base);
    for (int i = 0; i < test_count; i++) {
        failed += shared->failed[i] > 0;
        if (shared->failed[i] > SHOWN)
            printf("FAILED %s: %s%s: %d in all\n", cases[tests[i].c].c->name, fault_call_name(tests[i].call),
                   effect_names[tests[i].effect], shared->failed[i]);
    }
    printf("%lld failures injected into %d command lines in %.0f s\n", (long long)shared->runs, case_count,
           seconds_now() - start);
    printf("%d passed, %d failed\n", case_count + test_count - failed, failed);
    return failed > 0;
}
