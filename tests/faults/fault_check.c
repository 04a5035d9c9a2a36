/* fault_check.c: the undisturbed run of a case, and the checks of a run with a failure. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* strsignal */
#endif
#include "fault_run.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void add_files(case_state *s, const char *base, const char *names, file_role role, bool exists)
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
            fault_stop(path_in(base, word).text);
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

void case_prepare(const case_state *s, const char *base, const char *folder)
{
    if (mkdir(folder, 0777) != 0 || mkdir(path_in(folder, "tmp").text, 0777) != 0)
        fault_stop(folder);
    for (int i = 0; i < s->count; i++)
        content_write(&s->files[i].before, path_in(folder, s->files[i].name).text);
    if (s->c->input) {
        content input = content_of(path_in(base, s->c->input).text);
        content_write(&input, path_in(folder, s->c->input).text);
        content_free(&input);
    }
}

bool case_reference(case_state *s, run *r, const char *base)
{
    path folder = path_in(base, "reference");
    add_files(s, base, s->c->inputs, INPUT, true);
    add_files(s, base, s->c->outputs, OUTPUT, true);
    add_files(s, base, s->c->made, OUTPUT, false);
    add_files(s, base, s->c->checkpoint, CHECKPOINT, strstr(s->c->arguments, "--resume") != NULL);
    case_prepare(s, base, folder.text);
    run_plan(r, FAULT_ALLOCATE, FAULT_ONCE, 0, true);
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

char fault_complaint[400];

#define COMPLAIN(...) (snprintf(fault_complaint, sizeof fault_complaint, __VA_ARGS__), false)

/* The last line on standard error that the undisturbed run does not print begins as all errors do, and says what failed. */
static bool check_message(const case_state *s, const run *r, const content *messages)
{
    const fault_control *f = r->control;
    char line[1000] = "";
    if (messages->size == 0 || messages->data[messages->size - 1] != '\n')
        return COMPLAIN("exit status 1 without a message");
    for (size_t end = messages->size - 1, begin; !*line && end > 0; end = begin > 0 ? begin - 1 : 0) {
        begin = end;
        while (begin > 0 && messages->data[begin - 1] != '\n')
            begin--;
        snprintf(line, sizeof line, "%.*s\n", (int)(end - begin), messages->data + begin);
        if (strncmp(line, "lapse: ", 7) == 0 && strstr(s->messages.data, line))
            *line = 0; /* a note */
    }
    if (strncmp(line, "lapse: ", 7) != 0)
        return COMPLAIN("the last line is no error: %.200s", line);
    /* A thread that cannot start, or a missing status, has consequences of its own. */
    bool other = f->call == FAULT_THREAD || f->call == FAULT_STATUS || strstr(line, "cannot write to standard output");
    if (!other && !strstr(line, fault_call_error(f->call)))
        return COMPLAIN("the message does not say \"%s\": %.200s", fault_call_error(f->call), line);
    return true;
}

/* A checkpoint that a failed run has left leads to the same model. */
static bool check_resumes(const case_state *s, run *r, const char *folder)
{
    fault_control saved = *r->control;
    run_plan(r, FAULT_ALLOCATE, FAULT_ONCE, 0, false);
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

/* A file that is written in several steps is readable after each. */
static bool is_readable(run *r, const char *folder, const char *name)
{
    fault_control saved = *r->control;
    char arguments[100];
    snprintf(arguments, sizeof arguments, "info %s", name);
    run_plan(r, FAULT_ALLOCATE, FAULT_ONCE, 0, false);
    run_tool(r, folder, NULL, arguments, "");
    bool readable = r->status == 0;
    *r->control = saved;
    return readable;
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
        if (file->role == OUTPUT && !(may_be_new && (as_reference || is_readable(r, folder, file->name))))
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
        fault_stop(folder);
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

bool case_check(const case_state *s, run *r, const char *folder)
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
        char first[sizeof fault_complaint];
        memcpy(first, fault_complaint, sizeof first);
        bool clean = check_left_behind(s, folder, false) && check_left_behind(s, path_in(folder, "tmp").text, true);
        bool whole = !good || check_files(s, r, folder, status);
        if (!good)
            memcpy(fault_complaint, first, sizeof first);
        good = good && clean && whole;
    } else {
        check_left_behind(s, folder, false);
        check_left_behind(s, path_in(folder, "tmp").text, true);
    }
    restore_files(s, folder);
    return good;
}
