/* completion.c: completion for bash, from the tables of the verbs; zsh runs it after `bashcompinit`. */
#include "options.h"

#include <stdio.h>

static void write_words(FILE *file, const char *const *words)
{
    for (int i = 0; words[i]; i++)
        fprintf(file, i ? " %s" : "%s", words[i]);
}

/* The values of an option that has a list of them. */
static const char *const *values_of(const cli_option *option)
{
    return option->type == CLI_TRAIN ? option->names : option->choices ? option->choices() : NULL;
}

void cli_help_completion(FILE *file)
{
    fputs("# Completion of lapse for bash: verbs, options, their values, and files. Made by `lapse help --completion`.\n"
          "_lapse()\n{\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options= values=\n"
          "    COMPREPLY=()\n"
          "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
          "        options='--help --version",
          file);
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++)
        fprintf(file, " %s", (*verb)->name);
    fputs("'\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
          "        return\n"
          "    fi\n"
          "    case ${COMP_WORDS[1]} in\n",
          file);
    for (const cli_verb *const *verb = cli_verbs(); *verb; verb++) {
        fprintf(file, "    %s)\n        options='--help", (*verb)->name);
        for (const cli_option *option = cli_verb_options(*verb); option->name; option++)
            fprintf(file, " --%s", option->name);
        fputs("'\n        case $before in\n", file);
        for (const cli_option *option = cli_verb_options(*verb); option->name; option++) {
            const char *const *values = values_of(option);
            if (!values)
                continue;
            fprintf(file, "        --%s) values='", option->name);
            write_words(file, values);
            fputs("' ;;\n", file);
        }
        fputs("        esac\n        ;;\n", file);
    }
    fputs("    esac\n"
          "    if [ -n \"$values\" ]; then\n"
          "        COMPREPLY=($(compgen -W \"$values\" -- \"$word\"))\n"
          "    elif [[ $word == -* ]]; then\n"
          "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
          "    else\n"
          "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
          "        compopt -o filenames 2>/dev/null\n"
          "    fi\n"
          "}\n"
          "complete -F _lapse lapse\n",
          file);
}
