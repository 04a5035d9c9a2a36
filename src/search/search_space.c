/* search_space.c: the table of changes. Steps are about as large as those between settings that have been found to matter
 * (docs/tune.md); several changes add up over trials, because a trial starts from the best one before it. */
#include "search/search_space.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct change_row {
    const char *option;
    double factors[4];         /* the value is multiplied by one of these; 0 ends them */
    double steps[4];           /* or one of these is added */
    const char *const *values; /* or it is one of these; NULL-terminated */
    double least, most;
    int multiple; /* of which a whole number is rounded to; 0: not rounded */
    int weight;   /* how often it is chosen, relative to the others */
} change_row;

static const char *const encodings[] = {"mercer", "bochner", NULL}, *const switches[] = {"on", "off", NULL},
                         *const l2[] = {"0", "1e-7", "1e-6", "1e-5", NULL};

/* clang-format off */
static const change_row rows[] = {
    {.option = "dropout", .steps = {-0.1, -0.05, 0.05, 0.1}, .least = 0, .most = 0.7, .weight = 4},
    {.option = "learning-rate", .factors = {0.5, 0.7, 1.4, 2}, .least = 1e-5, .most = 0.03, .weight = 4},
    {.option = "dims", .factors = {0.5, 0.75, 1.5, 2}, .least = 8, .most = 512, .multiple = 8, .weight = 3},
    {.option = "batch", .factors = {0.5, 2}, .least = 4, .most = 1024, .multiple = 1, .weight = 3},
    {.option = "heads", .factors = {0.5, 2}, .least = 1, .most = 8, .multiple = 1, .weight = 2},
    {.option = "blocks", .steps = {-1, 1}, .least = 1, .most = 4, .multiple = 1, .weight = 2},
    {.option = "layers", .steps = {-1, 1}, .least = 1, .most = 3, .multiple = 1, .weight = 2},
    {.option = "encoding", .values = encodings, .weight = 2},
    {.option = "periods", .factors = {0.5, 0.75, 1.5, 2}, .least = 2, .most = 128, .multiple = 1, .weight = 2},
    {.option = "harmonics", .steps = {-2, -1, 1, 2}, .least = 1, .most = 10, .multiple = 1, .weight = 1},
    {.option = "context", .factors = {0.5, 2}, .least = 8, .most = 400, .multiple = 1, .weight = 2},
    {.option = "gap-input", .values = switches, .weight = 1},
    {.option = "l2", .values = l2, .weight = 1},
    {.option = "beta2", .values = (const char *const[]){"0.98", "0.99", "0.999", NULL}, .weight = 1},
    {.option = "order", .steps = {-1, 1}, .least = 1, .most = 5, .multiple = 1, .weight = 2},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

/* The option can be changed: the caller did not set it, and it has an effect. */
static bool is_free(const change_row *row, const lapse_train_options *fixed, const lapse_train_options *resolved)
{
    char model[64];
    lapse_train_options_get(resolved, "model", model, sizeof model);
    return !lp_train_option_given(fixed, row->option) && lapse_model_has_option(model, row->option) &&
           lapse_train_options_apply(resolved, row->option);
}

static int count_numbers(const double *numbers)
{
    int count = 0;
    while (count < 4 && numbers[count] != 0)
        count++;
    return count;
}

/* A value of the row's list, other than the current one. */
static void other_choice(const change_row *row, const char *now, lp_random *random, char *out, size_t size)
{
    const char *others[8];
    uint32_t count = 0;
    for (int i = 0; row->values[i] && count < 8; i++)
        if (strcmp(row->values[i], now) != 0)
            others[count++] = row->values[i];
    snprintf(out, size, "%s", count > 0 ? others[lp_random_below(random, count)] : now);
}

/* A value beside the current one, within the row's range. */
static void next_number(const change_row *row, const char *now, lp_random *random, char *out, size_t size)
{
    char number[LP_NUMBER_SIZE];
    int factors = count_numbers(row->factors), steps = count_numbers(row->steps);
    double value = strtod(now, NULL);
    value = factors > 0 ? value * row->factors[lp_random_below(random, (uint32_t)factors)]
                        : value + row->steps[lp_random_below(random, (uint32_t)steps)];
    if (row->multiple > 0)
        value = row->multiple * fmax(1, round(value / row->multiple));
    else
        value = strtod((snprintf(number, sizeof number, "%.2g", value), number), NULL);
    snprintf(out, size, "%s", lp_number_text(fmin(fmax(value, row->least), row->most), number));
}

bool lp_search_change(const lapse_train_options *fixed, const lapse_train_options *resolved, lp_random *random,
                      lapse_train_options *given, const char **name)
{
    char now[LP_OPTION_TEXT_SIZE], value[LP_OPTION_TEXT_SIZE];
    uint32_t total = 0;
    for (int r = 0; r < ROWS; r++)
        total += is_free(&rows[r], fixed, resolved) ? (uint32_t)rows[r].weight : 0;
    if (total == 0)
        return false;
    uint32_t place = lp_random_below(random, total);
    for (int r = 0; r < ROWS; r++) {
        uint32_t weight = is_free(&rows[r], fixed, resolved) ? (uint32_t)rows[r].weight : 0;
        if (place >= weight) {
            place -= weight;
            continue;
        }
        lapse_train_options_get(resolved, rows[r].option, now, sizeof now);
        if (rows[r].values)
            other_choice(&rows[r], now, random, value, sizeof value);
        else
            next_number(&rows[r], now, random, value, sizeof value);
        *name = rows[r].option;
        return strcmp(value, now) != 0 && lapse_train_options_set(given, rows[r].option, value, NULL) == LAPSE_OK;
    }
    return false;
}
