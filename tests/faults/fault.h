/* fault.h: failure injection. fault_calls.c replaces the allocation, file and thread functions of the C library in this
 * program and makes the Nth call of a group fail; fault_run.c runs the tool with every N; fault_cases.c has the command
 * lines. */
#ifndef LP_FAULT_H
#define LP_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Groups of functions with a common count. */
typedef enum fault_call {
    FAULT_ALLOCATE, /* malloc, calloc, realloc, aligned_alloc, posix_memalign, memalign; strdup and others call malloc */
    FAULT_MAP,      /* mmap */
    FAULT_OPEN,     /* open, openat, mkdir, mkdtemp */
    FAULT_READ,     /* read */
    FAULT_WRITE,    /* write; standard output included, standard error not */
    FAULT_SYNC,     /* fsync */
    FAULT_LINK,     /* linkat, rename */
    FAULT_CLOSE,    /* close: the descriptor is closed all the same */
    FAULT_STATUS,   /* stat, fstat, lstat, access, realpath */
    FAULT_THREAD,   /* pthread_create */
    FAULT_CALLS
} fault_call;

typedef enum fault_effect {
    FAULT_ONCE,      /* the Nth call fails */
    FAULT_FROM,      /* the Nth call and all later ones fail */
    FAULT_SHORT,     /* the Nth write or read transfers half of the bytes */
    FAULT_INTERRUPT, /* the Nth write or read fails with EINTR */
    FAULT_EFFECTS
} fault_effect;

enum { FAULT_FRAMES = 24, FAULT_LEAKS = 4 };

typedef struct fault_trace {
    void *frames[FAULT_FRAMES];
    int depth;
} fault_trace;

/* In memory that is shared with the process under test. Zero: nothing fails. */
typedef struct fault_control {
    fault_call call;
    fault_effect effect;
    int64_t at;  /* N, from 1; 0: none fails */
    bool traced; /* every allocation records its stack, so that `leaks` has more than the caller */

    _Atomic int64_t counts[FAULT_CALLS];
    _Atomic int fired;
    fault_trace where; /* the failing call */
    bool on_output;    /* it wrote to standard output */
    int leaked;        /* blocks and mappings that the run has not freed */
    size_t leak_sizes[FAULT_LEAKS];
    fault_trace leaks[FAULT_LEAKS];
    int open_files; /* more descriptors than before */
    bool completed; /* the tool returned from its main function */
} fault_control;

/* Starts and ends counting, failing and the record of live blocks in this process. */
void fault_begin(fault_control *control);
void fault_end(void);

const char *fault_call_name(fault_call call);
/* The text of the error that a failing call sets. */
const char *fault_call_error(fault_call call);

/* A command line. */
typedef struct fault_case {
    const char *name;
    const char *arguments;  /* separated by spaces */
    const char *inputs;     /* files that setup has made; copied to the folder of the run, and must stay as they are */
    const char *outputs;    /* files that exist before, and are replaced or stay as they are */
    const char *made;       /* files that do not exist before and may exist after a failure */
    const char *checkpoint; /* among `inputs` or `made`: a checkpoint, from which `arguments` --resume must go on */
    const char *input;      /* standard input; NULL: empty */
    int cost;               /* in `full`, every Nth call is tested with this stride; 0: 1 */
    bool named;             /* temporary files have names */
    bool timed;             /* the output has seconds and speeds: numbers are not compared */
    bool measured;          /* the output has lines in the order of measured times: it is not compared */
    bool shrunk;            /* the demo or the benchmark with less work */
    bool late;              /* work follows the writing of an output, so a failure may find it replaced */
} fault_case;

extern const fault_case fault_cases[];
/* Commands that make the inputs, in order, in one folder. */
extern const char *const fault_setup[];

/* The main function of the tool. */
int lapse_main(int count, char **arguments);

#endif
