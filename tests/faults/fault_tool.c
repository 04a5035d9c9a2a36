/* fault_tool.c: runs the tool in a process that is forked from this one, which has all libraries loaded. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create, fopencookie */
#endif
#include "fault_run.h"

#include "base/file.h"
#include "lapse_lab.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_WORDS = 40, LIMIT_S = 60 };

/* ---------------------------------------------------------------------------------------------------- files ------ */

void fault_stop(const char *what)
{
    fprintf(stderr, "faults: %s: %s\n", what, strerror(errno));
    exit(2);
}

content content_of_handle(int handle)
{
    struct stat status;
    content found = {NULL, 0};
    if (fstat(handle, &status) != 0)
        return found;
    found.size = (size_t)status.st_size;
    found.data = calloc(found.size + 1, 1);
    if (!found.data || pread(handle, found.data, found.size, 0) != status.st_size)
        fault_stop("cannot read a file");
    return found;
}

content content_of(const char *file)
{
    content found = {NULL, 0};
    int handle = open(file, O_RDONLY | O_CLOEXEC);
    if (handle >= 0) {
        found = content_of_handle(handle);
        close(handle);
    }
    return found;
}

void content_free(content *c)
{
    free(c->data);
    *c = (content){NULL, 0};
}

bool content_equal(const content *a, const content *b)
{
    return !a->data == !b->data && a->size == b->size && (!a->data || memcmp(a->data, b->data, a->size) == 0);
}

void content_write(const content *c, const char *file)
{
    if (!c->data) {
        unlink(file);
        return;
    }
    int handle = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (handle < 0 || write(handle, c->data, c->size) != (ssize_t)c->size || close(handle) != 0)
        fault_stop(file);
}

path path_in(const char *folder, const char *name)
{
    path p;
    if (snprintf(p.text, sizeof p.text, "%s/%s", folder, name) >= (int)sizeof p.text)
        fault_stop("a path is too long");
    return p;
}

void remove_tree(const char *folder)
{
    DIR *listing = opendir(folder);
    for (struct dirent *entry; listing && (entry = readdir(listing)) != NULL;) {
        path p = path_in(folder, entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (unlink(p.text) != 0)
            remove_tree(p.text);
    }
    if (listing)
        closedir(listing);
    rmdir(folder);
}

/* ------------------------------------------------------------------------------------------------- the tool ------ */

/* Replaced by the linker: the demo with less data and fewer epochs, the benchmark without its longest measurement. */
static bool shrunk;
void __real_lapse_simulate_options_default(lapse_simulate_options *options);
void __wrap_lapse_simulate_options_default(lapse_simulate_options *options);
lapse_status __real_lapse_train(const lapse_dataset *dataset, const lapse_train_options *options,
                                lapse_on_progress on_progress, void *context, lapse_model **model, lapse_error *error);
lapse_status __wrap_lapse_train(const lapse_dataset *dataset, const lapse_train_options *options,
                                lapse_on_progress on_progress, void *context, lapse_model **model, lapse_error *error);

double __real_lp_bench_peak(int threads);
double __wrap_lp_bench_peak(int threads);

double __wrap_lp_bench_peak(int threads)
{
    return shrunk ? 1e12 : __real_lp_bench_peak(threads);
}

void __wrap_lapse_simulate_options_default(lapse_simulate_options *options)
{
    __real_lapse_simulate_options_default(options);
    if (shrunk) {
        options->sequences = 40;
        options->days = 20;
    }
}

lapse_status __wrap_lapse_train(const lapse_dataset *dataset, const lapse_train_options *options,
                                lapse_on_progress on_progress, void *context, lapse_model **model, lapse_error *error)
{
    static const char *const small[][2] = {{"epochs", "1"}, {"dims", "4"}, {"context", "4"}, {"periods", "2"}};
    for (size_t i = 0; shrunk && i < sizeof small / sizeof *small; i++) {
        lapse_train_options *mutable = (lapse_train_options *)(uintptr_t)options;
        if (!lapse_train_options_apply(options, small[i][0]))
            continue;
        lapse_status status = lapse_train_options_set(mutable, small[i][0], small[i][1], error);
        if (status != LAPSE_OK)
            return status;
    }
    return __real_lapse_train(dataset, options, on_progress, context, model, error);
}

/* Writes all, as the C library does. 0 is an error. */
static ssize_t write_output(void *cookie, const char *data, size_t size)
{
    size_t done = 0;
    (void)cookie;
    while (done < size) {
        ssize_t written = write(STDOUT_FILENO, data + done, size - done);
        if (written < 0 && errno != EINTR)
            return 0;
        done += written > 0 ? (size_t)written : 0;
    }
    return (ssize_t)size;
}

/* Runs the tool in this process; never returns. Standard output calls the replaced write: that of the C library calls its own. */
static void run_here(const char *arguments, const char *extra, fault_control *control)
{
    static char words[2000], name[] = "lapse", buffer[4096];
    char *list[MAX_WORDS + 1] = {name};
    int count = 1;
    char *save = NULL;
    snprintf(words, sizeof words, "%s %s", arguments, extra);
    for (char *word = strtok_r(words, " ", &save); word && count < MAX_WORDS; word = strtok_r(NULL, " ", &save))
        list[count++] = word;
    stdout = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_output});
    if (!stdout)
        _exit(99);
    setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    alarm(LIMIT_S);
    fault_begin(control);
    int status = lapse_main(count, list);
    fault_end();
    _exit(status);
}

void run_tool(run *r, const char *folder, const fault_case *c, const char *arguments, const char *extra)
{
    if (ftruncate(r->output, 0) != 0 || ftruncate(r->messages, 0) != 0 || lseek(r->output, 0, SEEK_SET) != 0 ||
        lseek(r->messages, 0, SEEK_SET) != 0)
        fault_stop("cannot empty a file");
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        fault_stop("fork");
    if (child == 0) {
        if (chdir(folder) != 0)
            _exit(99);
        int input = open(c && c->input ? c->input : "/dev/null", O_RDONLY);
        if (input < 0 || dup2(input, STDIN_FILENO) < 0 || dup2(r->output, STDOUT_FILENO) < 0 ||
            dup2(r->messages, STDERR_FILENO) < 0)
            _exit(99);
        close(input);
        close(r->output);
        close(r->messages);
        setenv("TMPDIR", "tmp", 1);
        shrunk = c && c->shrunk;
        lp_writer_name_always(c && c->named);
        run_here(arguments, extra, r->control);
    }
    while (waitpid(child, &r->status, 0) < 0)
        if (errno != EINTR)
            fault_stop("waitpid");
}

void run_init(run *r)
{
    void *shared = mmap(NULL, sizeof *r->control, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    r->output = memfd_create("output", MFD_CLOEXEC);
    r->messages = memfd_create("messages", MFD_CLOEXEC);
    if (shared == MAP_FAILED || r->output < 0 || r->messages < 0)
        fault_stop("cannot make a run");
    r->control = shared;
}

void run_plan(run *r, fault_call call, fault_effect effect, int64_t at, bool traced)
{
    memset(r->control, 0, sizeof *r->control);
    r->control->call = call;
    r->control->effect = effect;
    r->control->at = at;
    r->control->traced = traced;
}
