/* import_speed.c: speed and memory of importing a CSV or JSON Lines file into a dataset file.
 *
 *   import_speed [FOLDER [MEGABYTES [THREADS]]]      defaults: the current folder, 1000 MB, all cores
 *
 * Writes files into FOLDER (user,time,event; 200,000 users, 500 event types, times with milliseconds) in three
 * orders, and the first also as JSON Lines, imports each in a process of its own (read, sort, save, sync), verifies the
 * result, and prints
 *
 *   order      MB  rows  read s  save s  CPU s  MB/s  max MB  max / file  open s
 *
 *   time       rows in chronological order, users mixed: a log
 *   user       rows grouped by user, each in chronological order: an export
 *   random     rows in random order: every sequence has to be sorted
 *   json       the rows of time, one object per line
 *
 * The files are deleted at the end. They were just written, so reads come from the page cache. Memory is the maximum
 * resident set size of the importing process (getrusage).
 */
#include "base/random.h"

#include <lapse.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { USERS = 200000, TYPES = 500 };

typedef enum row_order { ORDER_TIME, ORDER_USER, ORDER_RANDOM, ORDER_JSON, ORDER_COUNT } row_order;

static const char *const order_names[ORDER_COUNT] = {"time", "user", "random", "json"};

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Checksums of the written rows, to compare with the dataset. */
typedef struct totals {
    int64_t bytes, rows;
    int64_t milliseconds; /* sum over rows, modulo 2^64 */
} totals;

static totals make_file(const char *path, row_order order, int64_t bytes)
{
    totals made = {0};
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(1);
    }
    bool json = order == ORDER_JSON;
    lp_random random = lp_random_start(1, LP_PURPOSE_TEST, json ? ORDER_TIME : (uint32_t)order);
    int64_t most = bytes / 30, clock = 1325376000000; /* estimated number of rows; 2012 in milliseconds */
    int64_t step = 63072000000 / most;                /* two years in total */
    int64_t csv_bytes = strlen("user,time,event\n");  /* both formats have the same rows */
    made.bytes += json ? 0 : fprintf(file, "user,time,event\n");
    while (csv_bytes < bytes) {
        uint32_t user = lp_random_below(&random, USERS);
        clock += lp_random_below(&random, (uint32_t)(2 * step + 1));
        if (order == ORDER_USER)
            user = (uint32_t)((double)made.rows / (double)most * USERS);
        int64_t time = order == ORDER_RANDOM ? 1325376000000 + lp_random_below(&random, 4000000000u) : clock;
        double u = lp_random_uniform(&random);
        int type = (int)(u * u * TYPES);
        char row[100];
        csv_bytes += snprintf(row, sizeof row, "%" PRIu32 ",%" PRId64 ".%03d,event %d\n", user + 1, time / 1000,
                              (int)(time % 1000), type);
        made.bytes += json ? fprintf(file, "{\"user\":%" PRIu32 ",\"time\":%" PRId64 ".%03d,\"event\":\"event %d\"}\n",
                                     user + 1, time / 1000, (int)(time % 1000), type)
                           : fprintf(file, "%s", row);
        made.rows++;
        made.milliseconds += time;
    }
    if (fclose(file) != 0) {
        perror(path);
        exit(1);
    }
    return made;
}

static void stop_on(lapse_status status, const lapse_error *error)
{
    if (status == LAPSE_OK)
        return;
    fprintf(stderr, "%s:%" PRId64 ":%" PRId64 ": %s\n", error->file, error->line, error->column, error->message);
    exit(1);
}

/* Verifies that the dataset has all rows, sorted. */
static void check(const lapse_dataset *dataset, const totals *made)
{
    int64_t milliseconds = 0, events = 0;
    for (int64_t s = 0; s < lapse_dataset_sequence_count(dataset); s++) {
        const double *times;
        const int32_t *types;
        int64_t count;
        lapse_dataset_sequence(dataset, s, &times, &types, &count);
        for (int64_t i = 0; i < count; i++) {
            milliseconds += (int64_t)(times[i] * 1000 + 0.5);
            if (i > 0 && times[i] < times[i - 1]) {
                fprintf(stderr, "sequence %" PRId64 " is not in order\n", s);
                exit(1);
            }
        }
        events += count;
    }
    if (events != made->rows || milliseconds != made->milliseconds) {
        fprintf(stderr, "%" PRId64 " rows went in and %" PRId64 " came out, or their times differ\n", made->rows,
                events);
        exit(1);
    }
}

typedef struct import_timing {
    double read, save, cpu;
} import_timing;

/* Imports in a child process, to measure its memory; the timing returns through a pipe. */
static import_timing import_apart(const char *input, const char *output, int threads, double *peak)
{
    int ends[2];
    import_timing timing = {0};
    if (pipe(ends) != 0)
        exit(1);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        lapse_import_options options;
        lapse_import_options_default(&options);
        options.input = input;
        options.threads = threads;
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        double start = seconds_now();
        stop_on(lapse_dataset_read(&options, &dataset, NULL, &error), &error);
        timing.read = seconds_now() - start;
        stop_on(lapse_dataset_save(dataset, output, &error), &error);
        timing.save = seconds_now() - start - timing.read;
        if (write(ends[1], &timing, sizeof timing) != (ssize_t)sizeof timing)
            exit(1);
        _exit(0);
    }
    close(ends[1]);
    int status = 1;
    struct rusage usage;
    if (child < 0 || read(ends[0], &timing, sizeof timing) != (ssize_t)sizeof timing ||
        wait4(child, &status, 0, &usage) != child || status != 0) {
        fprintf(stderr, "the import of %s failed\n", input);
        exit(1);
    }
    close(ends[0]);
    *peak = (double)usage.ru_maxrss * 1024;
    timing.cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    return timing;
}

int main(int count, char **arguments)
{
    const char *folder = count > 1 ? arguments[1] : ".";
    int64_t bytes = (int64_t)(1e6 * (count > 2 ? atof(arguments[2]) : 1000));
    int threads = count > 3 ? atoi(arguments[3]) : 0;
    char input[4096], output[4096];
    snprintf(input, sizeof input, "%s/import_speed.csv", folder);
    snprintf(output, sizeof output, "%s/import_speed.lapse", folder);
    printf("%-8s %8s %10s %8s %8s %8s %8s %8s %12s %8s\n", "order", "MB", "rows", "read s", "save s", "CPU s", "MB/s",
           "peak MB", "peak / file", "open s");
    for (row_order order = 0; order < ORDER_COUNT; order++) {
        totals made = make_file(input, order, bytes);
        double peak;
        import_timing timing = import_apart(input, output, threads, &peak);
        lapse_dataset *dataset = NULL;
        lapse_error error = {0};
        double start = seconds_now();
        stop_on(lapse_dataset_open(output, &dataset, &error), &error);
        double open_seconds = seconds_now() - start;
        check(dataset, &made);
        lapse_dataset_close(dataset);
        double size = (double)made.bytes;
        printf("%-8s %8.0f %10" PRId64 " %8.2f %8.2f %8.2f %8.0f %8.0f %12.2f %8.2f\n", order_names[order], size / 1e6,
               made.rows, timing.read, timing.save, timing.cpu, size / 1e6 / (timing.read + timing.save), peak / 1e6,
               peak / size, open_seconds);
        fflush(stdout);
    }
    unlink(input);
    unlink(output);
    return 0;
}
