/* answers.c: see answers.h. */
#include "answers.h"

lapse_status cli_when_parse(const char *text, cli_when *when, lapse_error *error)
{
    when->text = text;
    when->relative = text[0] == '+';
    return when->relative ? lapse_duration_parse(text + 1, &when->seconds, error)
                          : lapse_time_parse(text, &when->seconds, error);
}

void cli_choices_top(const double *probabilities, int64_t types, cli_choice *top, int64_t count)
{
    int64_t filled = 0;
    for (int64_t type = 0; type < types; type++) {
        if (filled == count && !(probabilities[type] > top[count - 1].probability))
            continue;
        int64_t rank = filled < count ? filled++ : count - 1;
        for (; rank > 0 && probabilities[type] > top[rank - 1].probability; rank--)
            top[rank] = top[rank - 1];
        top[rank].type = type;
        top[rank].probability = probabilities[type];
    }
}
