/* simulate_shop.c: the preset "shop": customers who view and buy items. docs/simulate.md defines it in formulas.
 *
 * The order of events says little and their times say much: after a view, minutes decide between another view and the
 * purchase; days later, what is due depends on when each item was bought, not on which was bought last.
 */
#include "simulate/simulate.h"

#include <string.h>

#define MINUTE 60.0
#define DAY LP_SECONDS_A_DAY

/* Staples have repeat purchases; other items trigger an accessory. 0 or NULL: none. */
typedef struct good {
    const char *item, *category;
    double base_rate;      /* base rate of views per day */
    double again, period;  /* views that a purchase triggers, on average, after `period` days */
    double skipped;        /* views that it triggers after twice the period */
    const char *accessory; /* item whose views a purchase triggers */
    double follows, delay; /* views of the accessory that a purchase triggers, on average, after `delay` days */
} good;

static const good goods[] = {
    /* item, category, base_rate, again, period, skipped, accessory, follows, delay */
    {"coffee", "grocery", 0.008, 0.82, 7, 0, NULL, 0, 0},
    {"vegetables", "grocery", 0.008, 0.74, 7, 0.08, NULL, 0, 0},
    {"kibble", "household", 0.004, 0.85, 14, 0, NULL, 0, 0},
    {"detergent", "household", 0.004, 0.85, 30, 0, NULL, 0, 0},
    {"camera", "photo", 0.008, 0, 0, 0, "tripod", 0.9, 3},
    {"tripod", "photo", 0.001, 0, 0, 0, NULL, 0, 0},
    {"tent", "outdoor", 0.008, 0, 0, 0, "stove", 0.9, 5},
    {"stove", "outdoor", 0.001, 0, 0, 0, NULL, 0, 0},
};

enum { GOODS = sizeof goods / sizeof goods[0] };

/* Event types: all views, then all purchases. */
static int32_t view(int number)
{
    return number;
}

static int32_t buy(int number)
{
    return GOODS + number;
}

static bool add_types(lp_law *law)
{
    for (int g = 0; g < GOODS; g++) {
        if (lp_law_add_type(law, "view", goods[g].item, goods[g].category, goods[g].base_rate) < 0)
            return false;
    }
    for (int g = 0; g < GOODS; g++) {
        if (lp_law_add_type(law, "buy", goods[g].item, goods[g].category, 0) < 0)
            return false;
    }
    return true;
}

/* Within the hour: a view triggers another view, of this item or of others in its category, and then the purchase. */
static bool add_visit(lp_law *law, int g)
{
    bool added = lp_law_add_excitation(law, view(g), view(g), 0.1, &lp_law_exponential, 2 * MINUTE, 0) &&
                 lp_law_add_excitation(law, view(g), buy(g), 0.6, &lp_law_gaussian, 20 * MINUTE, 0.25);
    for (int other = 0; added && other < GOODS; other++) {
        if (other != g && strcmp(goods[other].category, goods[g].category) == 0)
            added = lp_law_add_excitation(law, view(g), view(other), 0.2, &lp_law_exponential, 2 * MINUTE, 0);
    }
    return added;
}

/* After days: repeat purchases of staples, and accessories. */
static bool add_return(lp_law *law, int g)
{
    const good *this = &goods[g];
    if (this->again > 0 &&
        !lp_law_add_excitation(law, buy(g), view(g), this->again, &lp_law_gaussian, this->period * DAY, 0.15))
        return false;
    if (this->skipped > 0 &&
        !lp_law_add_excitation(law, buy(g), view(g), this->skipped, &lp_law_gaussian, 2 * this->period * DAY, 0.15))
        return false;
    for (int other = 0; this->accessory && other < GOODS; other++) {
        if (strcmp(goods[other].item, this->accessory) == 0 &&
            !lp_law_add_excitation(law, buy(g), view(other), this->follows, &lp_law_gaussian, this->delay * DAY, 0.2))
            return false;
    }
    return true;
}

lapse_status lp_preset_shop(lp_law *law, lapse_error *error)
{
    law->sequences = 4000;
    law->days = 180;
    law->seasonality =
        (lp_law_seasonality){.weekly = 0.6, .weekly_phase = 2.5 * DAY, .daily = 0.8, .daily_phase = DAY * 20 / 24};
    bool added = add_types(law);
    for (int g = 0; added && g < GOODS; g++)
        added = add_visit(law, g) && add_return(law, g);
    return added ? LAPSE_OK : lp_fail_memory(error, "the law of the shop", sizeof *law->excitations);
}
