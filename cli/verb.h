/* verb.h: the verbs. Each is defined in a file named after it. */
#ifndef CLI_VERB_H
#define CLI_VERB_H

#include "console.h"
#include "options.h"

extern const cli_verb cli_verb_demo, cli_verb_simulate, cli_verb_import, cli_verb_info, cli_verb_check,
    cli_verb_pretrain, cli_verb_train, cli_verb_tune, cli_verb_compare, cli_verb_eval, cli_verb_predict,
    cli_verb_forecast, cli_verb_serve, cli_verb_store,
    cli_verb_inspect, cli_verb_kernel, cli_verb_bound, cli_verb_bench, cli_verb_help;

#endif
