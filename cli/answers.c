/* answers.c: see answers.h. */
#include "answers.h"

lapse_status cli_when_parse(const char *text, cli_when *when, lapse_error *error)
{
    when->text = text;
    when->relative = text[0] == '+';
    return when->relative ? lapse_duration_parse(text + 1, &when->seconds, error)
                          : lapse_time_parse(text, &when->seconds, error);
}

void cli_choices_top(const double *probabilities, int64_t kinds, cli_choice *top, int64_t count)
{
    int64_t filled = 0;
    for (int64_t kind = 0; kind < kinds; kind++) {
        if (filled == count && !(probabilities[kind] > top[count - 1].probability))
            continue;
        int64_t place = filled < count ? filled++ : count - 1;
        for (; place > 0 && probabilities[kind] > top[place - 1].probability; place--)
            top[place] = top[place - 1];
        top[place].kind = kind;
        top[place].probability = probabilities[kind];
    }
}

lapse_status cli_session_fill(lapse_session *session, const lapse_dataset *dataset, int64_t sequence, const bool *known,
                              int64_t *appended, double *last, lapse_error *error)
{
    const double *times;
    const int32_t *kinds;
    int64_t count;
    lapse_session_clear(session);
    lapse_dataset_sequence(dataset, sequence, &times, &kinds, &count);
    *appended = 0;
    *last = times[count - 1];
    for (int64_t i = 0; i < count; i++) {
        if (!known[kinds[i]])
            continue;
        lapse_status status =
            lapse_session_append(session, times[i], lapse_dataset_kind_name(dataset, kinds[i]), error);
        if (status != LAPSE_OK)
            return status;
        ++*appended;
    }
    return LAPSE_OK;
}
