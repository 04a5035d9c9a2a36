/* fault_run.h: the parts of the program `faults`: files, a run of the tool in a process of its own, and the checks of what a run
 * leaves. */
#ifndef LP_FAULT_RUN_H
#define LP_FAULT_RUN_H

#include "fault.h"

/* ---------------------------------------------------------------------------------------------------- files ------ */

/* The content of a file. data is NULL if there is none. */
typedef struct content {
    char *data;
    size_t size;
} content;

typedef struct path {
    char text[1000];
} path;

/* Ends the program: it cannot do its work. */
void fault_stop(const char *what);
content content_of_handle(int handle);
content content_of(const char *file);
void content_free(content *c);
bool content_equal(const content *a, const content *b);
/* Writes the content to the file, or deletes the file if there is none. */
void content_write(const content *c, const char *file);
path path_in(const char *folder, const char *name);
void remove_tree(const char *folder);

/* ----------------------------------------------------------------------------------------------------- runs ------ */

typedef struct run {
    fault_control *control; /* shared with the process under test */
    int output, messages;   /* its standard output and error */
    int status;             /* of waitpid */
} run;

void run_init(run *r);
/* Sets what fails in the next run. at is 0: nothing. */
void run_plan(run *r, fault_call call, fault_effect effect, int64_t at, bool traced);
/* Runs a command line in a folder. c is NULL for the defaults of a case. */
void run_tool(run *r, const char *folder, const fault_case *c, const char *arguments, const char *extra);

/* ---------------------------------------------------------------------------------------------------- cases ------ */

typedef enum file_role { INPUT, OUTPUT, CHECKPOINT } file_role;

typedef struct case_file {
    char name[64];
    file_role role;
    content before, after; /* after: of the undisturbed run */
} case_file;

enum { FAULT_FILES = 16 };

typedef struct case_state {
    const fault_case *c;
    case_file files[FAULT_FILES];
    int count;
    content output, messages; /* of the undisturbed run */
    int64_t counts[FAULT_CALLS];
} case_state;

/* The undisturbed run of s->c: results and numbers of calls. The inputs are in the folder `base`. */
bool case_reference(case_state *s, run *r, const char *base);
/* Makes the folder of a case, with its files. */
void case_prepare(const case_state *s, const char *base, const char *folder);
/* Checks what a run has left in the folder, and restores the folder. False with the reason in fault_complaint. */
bool case_check(const case_state *s, run *r, const char *folder);
extern char fault_complaint[400];

#endif
