/* events.h: events of either form: a dataset file, or text that is imported in memory. */
#ifndef CLI_EVENTS_H
#define CLI_EVENTS_H

#include <lapse.h>

#include "column_options.h"

/* What a file is, by its first bytes. A pipe, a device and standard input ("-") count as text, because the other two are mapped
 * into memory. */
typedef enum cli_file_form { CLI_FORM_TEXT, CLI_FORM_DATASET, CLI_FORM_TENSORS } cli_file_form;

/* Returns CLI_DONE, or CLI_FAILED after printing the error: the file cannot be opened, or is a folder. */
int cli_file_form_find(const char *path, cli_file_form *form);

/* Refuses options for text that are set though the file is none: prints the error and returns CLI_USAGE, or CLI_DONE. */
int cli_columns_refuse(const char *path, const cli_columns *columns);

/* Opens events of either form. Text is imported with these options, and its columns are printed on standard error. With a
 * model (otherwise NULL), the columns are by default those of its training data, its fields are imported, and only other
 * columns are printed. Returns CLI_DONE, or the exit status after printing the error. The caller closes *dataset. */
int cli_events_open(const char *path, cli_columns *columns, const lapse_model *model, lapse_dataset **dataset);

/* Leaves the sequences of these names, in their order: --only. Returns CLI_DONE, or the exit status after printing the error. */
int cli_events_only(const cli_list *only, const char *path, lapse_dataset **dataset);

#define CLI_ONLY_HELP "only the history of this name (the user); repeatable"

/* The help of an argument that takes events. */
#define CLI_EVENTS_HELP \
    "dataset file from `lapse import`, or events in text, plain or gzip, one per row; - is standard input"

#endif
