/* fault_run.c: runs the tool with the Nth call of each group failing, for every N, and checks what each run leaves.
 *
 *   build/faults [--stride K] [--jobs J] [--seed S] FILES [CASE...]
 *
 * FILES is the folder of the CSV files. With a stride of K, every Kth N is tested, from a random one on. A run ends in one
 * of two ways. Exit status 0: all results are those of the undisturbed run (the tool could do without the call). Exit
 * status 1: the last line on standard error says what is wrong, and every file is as it was before. In both cases all
 * memory and descriptors are freed, inputs are unchanged, and no temporary file is left.
 *
 * Each run is a process that is forked from this one, which has all libraries loaded.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create, fopencookie */
#endif
#include "fault.h"

#include "base/file.h"
#include "base/random.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lapse.h"

enum { MAX_WORDS = 40, MAX_FILES = 16, MAX_CASES = 128, MAX_TESTS = 4096, CHUNK = 64, SHOWN = 2, LIMIT_S = 60 };

/* ---------------------------------------------------------------------------------------------------- files ------ */

/* The content of a file. data is NULL if there is none. */
typedef struct content {
    char *data;
    size_t size;
} content;

static void stop(const char *what)
{
    fprintf(stderr, "faults: %s: %s\n", what, strerror(errno));
    exit(2);
}

static content content_of_handle(int handle)
{
    struct stat status;
    content found = {NULL, 0};
    if (fstat(handle, &status) != 0)
        return found;
    found.size = (size_t)status.st_size;
    found.data = calloc(found.size + 1, 1);
    if (!found.data || pread(handle, found.data, found.size, 0) != status.st_size)
        stop("cannot read a file");
    return found;
}

static content content_of(const char *path)
{
    content found = {NULL, 0};
    int handle = open(path, O_RDONLY | O_CLOEXEC);
    if (handle >= 0) {
        found = content_of_handle(handle);
        close(handle);
    }
    return found;
}

static void content_free(content *c)
{
    free(c->data);
    *c = (content){NULL, 0};
}

static bool content_equal(const content *a, const content *b)
{
    return !a->data == !b->data && a->size == b->size && (!a->data || memcmp(a->data, b->data, a->size) == 0);
}

/* Writes the content to path, or deletes the file if there is none. */
static void content_write(const content *c, const char *path)
{
    if (!c->data) {
        unlink(path);
        return;
    }
    int handle = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (handle < 0 || write(handle, c->data, c->size) != (ssize_t)c->size || close(handle) != 0)
        stop(path);
}

typedef struct path {
    char text[1000];
} path;

static path path_in(const char *folder, const char *name)
{
    path p;
    if (snprintf(p.text, sizeof p.text, "%s/%s", folder, name) >= (int)sizeof p.text)
        stop("a path is too long");
    return p;
}

static void remove_tree(const char *folder)
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

typedef struct run {
    fault_control *control; /* shared with the process under test */
    int output, messages;   /* its standard output and error */
    int status;             /* of waitpid */
} run;

/* Makes a run of a command line in a folder. */
static void run_tool(run *r, const char *folder, const fault_case *c, const char *arguments, const char *extra)
{
    if (ftruncate(r->output, 0) != 0 || ftruncate(r->messages, 0) != 0 || lseek(r->output, 0, SEEK_SET) != 0 ||
        lseek(r->messages, 0, SEEK_SET) != 0)
        stop("cannot empty a file");
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        stop("fork");
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
            stop("waitpid");
}

static void run_init(run *r)
{
    void *shared = mmap(NULL, sizeof *r->control, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    r->output = memfd_create("output", MFD_CLOEXEC);
    r->messages = memfd_create("messages", MFD_CLOEXEC);
    if (shared == MAP_FAILED || r->output < 0 || r->messages < 0)
        stop("cannot make a run");
    r->control = shared;
}

static void plan(run *r, fault_call call, fault_effect effect, int64_t at, bool traced)
{
    memset(r->control, 0, sizeof *r->control);
    r->control->call = call;
    r->control->effect = effect;
    r->control->at = at;
    r->control->traced = traced;
}

/* ---------------------------------------------------------------------------------------------------- cases ------ */

typedef enum file_role { INPUT, OUTPUT, CHECKPOINT } file_role;

typedef struct case_file {
    char name[64];
    file_role role;
    content before, after; /* after: of the undisturbed run */
} case_file;

typedef struct case_state {
    const fault_case *c;
    case_file files[MAX_FILES];
    int count;
    content output, messages; /* of the undisturbed run */
    int64_t counts[FAULT_CALLS];
} case_state;

static case_state cases[MAX_CASES];
static int case_count;
static char base[300]; /* folder with the inputs, and a folder for each worker */

static void add_files(case_state *s, const char *names, file_role role, bool exists)
{
    char words[600], *save = NULL;
    snprintf(words, sizeof words, "%s", names ? names : "");
    for (char *word = strtok_r(words, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        case_file *file = &s->files[s->count++];
        snprintf(file->name, sizeof file->name, "%s", word);
        file->role = role;
        if (exists)
            file->before = role == OUTPUT ? (content){strdup("old\n"), 4} : content_of(path_in(base, word).text);
        if (role == INPUT && !file->before.data)
            stop(path_in(base, word).text);
    }
}

/* The output with numbers replaced by one letter, where they are measured times. */
static content comparable(const fault_case *c, const content *text)
{
    content out = {malloc(text->size + 1), 0};
    for (size_t i = 0; i < text->size; i++) {
        bool inside = out.size > 0 && out.data[out.size - 1] == 'N';
        bool digit = strchr("0123456789", text->data[i]) || (inside && strchr(".e+-, ", text->data[i]));
        if (!c->timed || !digit)
            out.data[out.size++] = text->data[i];
        else if (!inside)
            out.data[out.size++] = 'N';
    }
    out.data[out.size] = 0;
    return out;
}

static void prepare_folder(const case_state *s, const char *folder)
{
    if (mkdir(folder, 0777) != 0 || mkdir(path_in(folder, "tmp").text, 0777) != 0)
        stop(folder);
    for (int i = 0; i < s->count; i++)
        content_write(&s->files[i].before, path_in(folder, s->files[i].name).text);
    if (s->c->input) {
        content input = content_of(path_in(base, s->c->input).text);
        content_write(&input, path_in(folder, s->c->input).text);
        content_free(&input);
    }
}

/* The undisturbed run: results and numbers of calls. */
static bool make_reference(case_state *s, run *r)
{
    path folder = path_in(base, "reference");
    add_files(s, s->c->inputs, INPUT, true);
    add_files(s, s->c->outputs, OUTPUT, true);
    add_files(s, s->c->made, OUTPUT, false);
    add_files(s, s->c->checkpoint, CHECKPOINT, strstr(s->c->arguments, "--resume") != NULL);
    prepare_folder(s, folder.text);
    plan(r, FAULT_ALLOCATE, FAULT_ONCE, 0, true);
    run_tool(r, folder.text, s->c, s->c->arguments, "");
    for (int i = 0; i < s->count; i++)
        s->files[i].after = content_of(path_in(folder.text, s->files[i].name).text);
    remove_tree(folder.text);
    s->output = content_of_handle(r->output);
    s->messages = content_of_handle(r->messages);
    for (int i = 0; i < FAULT_CALLS; i++)
        s->counts[i] = r->control->counts[i];
    if (r->status == 0 && r->control->leaked == 0 && r->control->open_files == 0)
        return true;
    printf("FAILED %s, undisturbed: status %d, %d leaks, %d files left open\n%s", s->c->name, r->status,
           r->control->leaked, r->control->open_files, s->messages.data);
    return false;
}

/* --------------------------------------------------------------------------------------------------- checks ------ */

static char complaint[400];

#define COMPLAIN(...) (snprintf(complaint, sizeof complaint, __VA_ARGS__), false)

/* The last line on standard error begins as all errors do, and says what failed. */
static bool check_message(const case_state *s, const run *r, const content *messages)
{
    const fault_control *f = r->control;
    if (messages->size < 2 || messages->data[messages->size - 1] != '\n')
        return COMPLAIN("exit status 1 without a message");
    size_t begin = messages->size - 1;
    while (begin > 0 && messages->data[begin - 1] != '\n')
        begin--;
    const char *line = messages->data + begin;
    if (strncmp(line, "lapse: ", 7) != 0)
        return COMPLAIN("the last line is no error: %.200s", line);
    /* A thread that cannot start, or a missing status, has consequences of its own. */
    bool other = f->call == FAULT_THREAD || f->call == FAULT_STATUS || strstr(line, "cannot write to standard output");
    if (!other && !strstr(line, fault_call_error(f->call)))
        return COMPLAIN("the message does not say \"%s\": %.200s", fault_call_error(f->call), line);
    (void)s;
    return true;
}

/* A checkpoint that a failed run has left leads to the same model. */
static bool check_resumes(const case_state *s, run *r, const char *folder)
{
    fault_control saved = *r->control;
    plan(r, FAULT_ALLOCATE, FAULT_ONCE, 0, false);
    run_tool(r, folder, s->c, s->c->arguments, "--resume");
    bool good = r->status == 0;
    for (int i = 0; i < s->count && good; i++) {
        content now = content_of(path_in(folder, s->files[i].name).text);
        good = content_equal(&now, &s->files[i].after);
        content_free(&now);
    }
    *r->control = saved;
    return good ? true : COMPLAIN("the checkpoint that it left does not resume to the same model");
}

static bool check_files(const case_state *s, run *r, const char *folder, int status)
{
    bool resumes = false;
    for (int i = 0; i < s->count; i++) {
        const case_file *file = &s->files[i];
        content now = content_of(path_in(folder, file->name).text);
        bool as_before = content_equal(&now, &file->before), as_reference = content_equal(&now, &file->after);
        bool there = now.data != NULL;
        content_free(&now);
        /* A file whose status is unknown is not deleted. */
        bool stays = file->role == CHECKPOINT && r->control->call == FAULT_STATUS && there;
        if (status == 0 && !as_reference && !stays)
            return COMPLAIN("exit status 0, but %s is not as without the failure", file->name);
        if (status == 0 || as_before)
            continue;
        bool may_be_new = s->c->late || r->control->on_output;
        if (file->role == CHECKPOINT && !there && !(may_be_new && as_reference))
            return COMPLAIN("the checkpoint is lost");
        resumes |= file->role == CHECKPOINT && there;
        if (file->role == OUTPUT && !(may_be_new && as_reference))
            return COMPLAIN("%s is %s", file->name, !there ? "lost" : as_reference ? "replaced" : "damaged");
        if (file->role == INPUT)
            return COMPLAIN("the input %s is changed", file->name);
    }
    return !resumes || check_resumes(s, r, folder);
}

static bool is_known(const case_state *s, const char *name)
{
    if (strcmp(name, "tmp") == 0 || (s->c->input && strcmp(name, s->c->input) == 0))
        return true;
    for (int i = 0; i < s->count; i++)
        if (strcmp(name, s->files[i].name) == 0)
            return true;
    return false;
}

/* Deletes what a run has left in the folder; complains about it. */
static bool check_left_behind(const case_state *s, const char *folder, bool all)
{
    bool good = true;
    DIR *listing = opendir(folder);
    if (!listing)
        stop(folder);
    for (struct dirent *entry; (entry = readdir(listing)) != NULL;) {
        path p = path_in(folder, entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 || (!all && is_known(s, entry->d_name)))
            continue;
        good = COMPLAIN("%s is left behind", entry->d_name);
        if (unlink(p.text) != 0)
            remove_tree(p.text);
    }
    closedir(listing);
    return good;
}

static void restore_files(const case_state *s, const char *folder)
{
    for (int i = 0; i < s->count; i++) {
        path p = path_in(folder, s->files[i].name);
        content now = content_of(p.text);
        if (!content_equal(&now, &s->files[i].before))
            content_write(&s->files[i].before, p.text);
        content_free(&now);
    }
}

static bool check_status(const case_state *s, const run *r, int *status)
{
    const fault_control *f = r->control;
    if (WIFSIGNALED(r->status))
        return COMPLAIN("killed by signal %d (%s)", WTERMSIG(r->status), strsignal(WTERMSIG(r->status)));
    *status = WEXITSTATUS(r->status);
    if (!f->completed)
        return COMPLAIN("the process ended itself with exit status %d", *status);
    if (*status > 1)
        return COMPLAIN("exit status %d", *status);
    if (*status == 1 && (!f->fired || f->effect == FAULT_SHORT || f->effect == FAULT_INTERRUPT))
        return COMPLAIN("exit status 1, although nothing failed");
    if (f->leaked > 0)
        return COMPLAIN("%d blocks are not freed", f->leaked);
    if (f->open_files != 0)
        return COMPLAIN("%d files are not closed", f->open_files);
    (void)s;
    return true;
}

static bool check_run(const case_state *s, run *r, const char *folder)
{
    int status = 0;
    bool good = check_status(s, r, &status);
    content messages = content_of_handle(r->messages), output = content_of_handle(r->output);
    if (good && status == 1)
        good = check_message(s, r, &messages);
    if (good && status == 0) {
        content now = comparable(s->c, &output), expected = comparable(s->c, &s->output);
        if (s->c->measured ? !output.size : !content_equal(&now, &expected))
            good = COMPLAIN("exit status 0, but the output is not as without the failure");
        content_free(&now);
        content_free(&expected);
    }
    content_free(&messages);
    content_free(&output);
    if (!WIFSIGNALED(r->status)) {
        char first[sizeof complaint];
        memcpy(first, complaint, sizeof first);
        bool clean = check_left_behind(s, folder, false) && check_left_behind(s, path_in(folder, "tmp").text, true);
        bool whole = !good || check_files(s, r, folder, status);
        if (!good)
            memcpy(complaint, first, sizeof first);
        good = good && clean && whole;
    } else {
        check_left_behind(s, folder, false);
        check_left_behind(s, path_in(folder, "tmp").text, true);
    }
    restore_files(s, folder);
    return good;
}

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
           effect_names[t->effect], complaint, s->c->arguments);
    print_trace(&r->control->where);
    if (!r->control->completed) { /* the report of a sanitizer */
        content messages = content_of_handle(r->messages);
        printf("%.4000s\n", messages.data);
        content_free(&messages);
    }
    if (r->control->leaked > 0) {
        plan(r, t->call, t->effect, at, true);
        run_tool(r, folder, s->c, s->c->arguments, "");
        for (int i = 0; i < r->control->leaked && i < FAULT_LEAKS; i++) {
            printf("   not freed: %zu bytes of\n", r->control->leak_sizes[i]);
            print_trace(&r->control->leaks[i]);
        }
        check_run(s, r, folder);
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
        stop(mine);
    for (int i = atomic_fetch_add(&shared->next, 1); i < chunk_count; i = atomic_fetch_add(&shared->next, 1)) {
        const test *t = &tests[chunks[i].test];
        char name[16];
        snprintf(name, sizeof name, "case%d", t->c);
        path folder = path_in(mine, name);
        if (!prepared[t->c])
            prepare_folder(&cases[t->c], folder.text);
        prepared[t->c] = true;
        for (int64_t n = chunks[i].first; n <= chunks[i].last; n += t->stride) {
            plan(&r, t->call, t->effect, n, false);
            run_tool(&r, folder.text, cases[t->c].c, cases[t->c].c->arguments, "");
            atomic_fetch_add(&shared->runs, 1);
            if (!check_run(&cases[t->c], &r, folder.text) &&
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
        add_test(c, call, FAULT_FROM, call == FAULT_ALLOCATE ? 8 * step : step, random);
        if (call == FAULT_READ || call == FAULT_WRITE) {
            add_test(c, call, FAULT_SHORT, step, random);
            add_test(c, call, FAULT_INTERRUPT, step, random);
        }
    }
}

static void make_inputs(const char *files, run *r)
{
    static const char *const names[] = {"events.csv",  "fields.csv",         "repeats.csv",
                                        "history.csv", "fields_history.csv", "strange.csv"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        content text = content_of(path_in(files, names[i]).text);
        if (!text.data)
            stop(path_in(files, names[i]).text);
        content_write(&text, path_in(base, names[i]).text);
        content_free(&text);
    }
    char command[800];
    snprintf(command, sizeof command, "gzip -c '%s/events.csv' >'%s/events.csv.gz'", base, base);
    if (system(command) != 0)
        stop("gzip");
    for (int i = 0; fault_setup[i]; i++) {
        plan(r, FAULT_ALLOCATE, FAULT_ONCE, 0, false);
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
    plan(r, FAULT_LINK, FAULT_ONCE, 0, false);
    run_tool(r, base, NULL, arguments, "");
    plan(r, FAULT_LINK, FAULT_ONCE, r->control->counts[FAULT_LINK], false);
    run_tool(r, base, NULL, arguments, "");
    if (access(path_in(base, resumed->checkpoint).text, F_OK) != 0)
        stop("no checkpoint was left");
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
        stop(base);
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
        failed += !make_reference(&cases[case_count], &r);
        add_tests(case_count++, stride, &random);
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        stop("mmap");
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
