/* simulate_goods.c: a catalogue as a function of its seed. Popularity is Zipf's with exponent 1 at every level, drawn
 * without tables: baseline((n + 1)^u) - 1 is rank r with probability log((r + 2) / (r + 1)) / log(n + 1). Ranks are mapped to
 * places by a fixed permutation, so that the numbers of items tell nothing of how popular they are. */
#include "data/simulate/simulate_goods.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a number of the goods is for: the step of its counter. */
enum { OF_SIZE = 1, OF_DEPARTMENT, OF_COMPLEMENT, OF_PERIOD, OF_RELEASE, OF_BRAND, OF_SERIES_NAME, OF_ADJECTIVE };

enum { RELEASED_AT_ONCE = 80, TRIES = 12 };
#define NEW_DAYS 30.0  /* an item is new for so long */
#define NEW_SHARE 0.15 /* of draws that look for a new item first */
#define LARGE_PRIME 1000003

static uint32_t hash(const lp_goods *goods, uint32_t what, int64_t number)
{
    return lp_philox(goods->seed, LP_PURPOSE_GOODS, what, (uint64_t)number).word[0];
}

static double uniform_of(const lp_goods *goods, uint32_t what, int64_t number)
{
    return ((double)hash(goods, what, number) + 0.5) * 0x1p-32;
}

/* ---------------------------------------------------------------------------------------------- the tree ----- */

/* Departments of about as many categories as there are departments; each category has at least one item. */
static void lay_out(lp_goods *goods)
{
    double total = 0, sum = 0;
    for (int32_t c = 0; c < goods->category_count; c++)
        total += 0.5 + uniform_of(goods, OF_SIZE, c);
    int32_t spare = goods->item_count - goods->category_count, first = 0;
    for (int32_t c = 0; c < goods->category_count; c++) {
        lp_goods_category *category = &goods->categories[c];
        sum += 0.5 + uniform_of(goods, OF_SIZE, c);
        int32_t end = c + 1 == goods->category_count ? goods->item_count : c + 1 + (int32_t)(spare * (sum / total));
        category->first = first;
        category->count = end - first;
        category->department = (int32_t)((int64_t)c * goods->department_count / goods->category_count);
        first = end;
    }
}

/* First category of a department, and of the one after the last. */
static int32_t department_first(const lp_goods *goods, int32_t department)
{
    return (int32_t)(((int64_t)department * goods->category_count + goods->department_count - 1) /
                     goods->department_count);
}

/* Which categories go together, and which are bought again and when. */
static void relate(lp_goods *goods)
{
    static const double periods[] = {7, 14, 30, 0, 0, 0};
    for (int32_t c = 0; c < goods->category_count; c++) {
        lp_goods_category *category = &goods->categories[c];
        int32_t first = department_first(goods, category->department);
        int32_t count = department_first(goods, category->department + 1) - first;
        uint32_t step = count > 1 ? 1 + hash(goods, OF_COMPLEMENT, c) % (uint32_t)(count - 1) : 0;
        category->complement = first + (c - first + (int32_t)step) % count;
        category->period = periods[hash(goods, OF_PERIOD, c) % (sizeof periods / sizeof *periods)];
    }
}

lp_goods *lp_goods_new(int64_t item_count, double days, uint64_t seed)
{
    lp_goods *goods = lp_alloc(1, sizeof *goods);
    if (!goods)
        return NULL;
    goods->seed = seed;
    goods->days = days;
    goods->item_count = (int32_t)item_count;
    goods->category_count = (int32_t)(1.5 * sqrt((double)item_count));
    goods->department_count = (int32_t)sqrt((double)goods->category_count);
    goods->categories = lp_alloc((size_t)goods->category_count, sizeof *goods->categories);
    if (!goods->categories) {
        lp_goods_free(goods);
        return NULL;
    }
    lay_out(goods);
    relate(goods);
    return goods;
}

void lp_goods_free(lp_goods *goods)
{
    if (goods)
        lp_free(goods->categories);
    lp_free(goods);
}

int32_t lp_goods_category_of(const lp_goods *goods, int32_t item)
{
    int32_t low = 0, high = goods->category_count;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (goods->categories[middle].first <= item)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static int32_t series_of(const lp_goods *goods, int32_t category, int32_t item)
{
    return (item - goods->categories[category].first) / LP_GOODS_SERIES;
}

/* Brands of a category take turns, beginning with one of its own. */
static int32_t first_brand(const lp_goods *goods, int32_t category)
{
    return (int32_t)(hash(goods, OF_BRAND, category) % LP_GOODS_BRANDS);
}

int32_t lp_goods_brand(const lp_goods *goods, int32_t category, int32_t item)
{
    return (first_brand(goods, category) + series_of(goods, category, item)) % LP_GOODS_BRANDS;
}

double lp_goods_release(const lp_goods *goods, int32_t item)
{
    double share = 100 * uniform_of(goods, OF_RELEASE, item);
    if (share < RELEASED_AT_ONCE || goods->categories[lp_goods_category_of(goods, item)].first == item)
        return 0;
    return goods->days * (0.3 + 0.7 * (share - RELEASED_AT_ONCE) / (100 - RELEASED_AT_ONCE));
}

/* ------------------------------------------------------------------------------------------------- draws ----- */

static int32_t draw_rank(int32_t count, lp_random *random)
{
    int32_t rank = (int32_t)exp(lp_random_uniform(random) * log((double)count + 1)) - 1;
    return rank < count ? rank : count - 1;
}

/* The place of a rank among `count`, which is no multiple of the prime: a permutation. */
static int32_t place_of(int32_t rank, int32_t count, int64_t salt)
{
    return (int32_t)(((int64_t)rank * LARGE_PRIME + salt) % count);
}

int32_t lp_goods_draw_category(const lp_goods *goods, int32_t department, lp_random *random)
{
    int32_t first = department < 0 ? 0 : department_first(goods, department);
    int32_t end = department < 0 ? goods->category_count : department_first(goods, department + 1);
    return first + place_of(draw_rank(end - first, random), end - first, first);
}

/* Any item of series number `series`, by popularity. */
static int32_t draw_in_series(const lp_goods *goods, int32_t category, int32_t series, lp_random *random)
{
    const lp_goods_category *c = &goods->categories[category];
    int32_t first = series * LP_GOODS_SERIES;
    int32_t count = c->count - first < LP_GOODS_SERIES ? c->count - first : LP_GOODS_SERIES;
    return c->first + first + place_of(draw_rank(count, random), count, series);
}

static int32_t draw_once(const lp_goods *goods, int32_t category, int32_t brand, lp_random *random)
{
    int32_t count = (goods->categories[category].count + LP_GOODS_SERIES - 1) / LP_GOODS_SERIES;
    int32_t offset = (brand - first_brand(goods, category) + LP_GOODS_BRANDS) % LP_GOODS_BRANDS;
    if (brand < 0 || offset >= count)
        return draw_in_series(goods, category, place_of(draw_rank(count, random), count, category), random);
    int32_t branded = (count - offset + LP_GOODS_BRANDS - 1) / LP_GOODS_BRANDS;
    int32_t turn = place_of(draw_rank(branded, random), branded, category);
    return draw_in_series(goods, category, offset + turn * LP_GOODS_BRANDS, random);
}

/* An item of the category that came out within the last days; -1: none was found. */
static int32_t draw_new(const lp_goods *goods, int32_t category, double day, lp_random *random)
{
    const lp_goods_category *c = &goods->categories[category];
    for (int i = 0; i < TRIES; i++) {
        int32_t item = c->first + (int32_t)lp_random_below(random, (uint32_t)c->count);
        double age = day - lp_goods_release(goods, item);
        if (age >= 0 && age < NEW_DAYS && age < day)
            return item;
    }
    return -1;
}

int32_t lp_goods_draw(const lp_goods *goods, int32_t category, int32_t brand, double day, lp_random *random)
{
    int32_t item = lp_random_uniform(random) < NEW_SHARE ? draw_new(goods, category, day, random) : -1;
    for (int i = 0; item < 0 && i < TRIES; i++) {
        int32_t drawn = draw_once(goods, category, brand, random);
        item = lp_goods_release(goods, drawn) <= day ? drawn : -1;
    }
    return item < 0 ? goods->categories[category].first : item;
}

int32_t lp_goods_draw_series(const lp_goods *goods, int32_t item, double day, lp_random *random)
{
    int32_t category = lp_goods_category_of(goods, item), series = series_of(goods, category, item);
    for (int i = 0; i < TRIES; i++) {
        int32_t drawn = draw_in_series(goods, category, series, random);
        if (drawn != item && lp_goods_release(goods, drawn) <= day)
            return drawn;
    }
    return item;
}

/* ------------------------------------------------------------------------------------------------- words ----- */

static const char *const nouns[] = {
    "kettle",  "lamp",    "chair",    "blanket", "bottle",   "jacket",  "sandal",  "puzzle",  "guitar", "racket",
    "candle",  "drill",   "ladder",   "mirror",  "pillow",   "curtain", "basket",  "shovel",  "tent",   "backpack",
    "helmet",  "glove",   "scarf",    "watch",   "wallet",   "camera",  "speaker", "printer", "router", "keyboard",
    "monitor", "cable",   "battery",  "teapot",  "saucer",   "skillet", "knife",   "spoon",   "towel",  "soap",
    "brush",   "razor",   "lotion",   "vitamin", "cereal",   "coffee",  "honey",   "pasta",   "sauce",  "juice",
    "cracker", "biscuit", "kibble",   "leash",   "aquarium", "seed",    "planter", "rake",    "hose",   "grill",
    "bicycle", "kayak",   "dumbbell", "rope",
};
static const char *const qualifiers[] = {
    "copper",     "oak",      "steel",      "woollen",  "glass",     "leather",  "cotton",     "bamboo",
    "marble",     "silver",   "clay",       "folding",  "travel",    "garden",   "kitchen",    "office",
    "winter",     "summer",   "outdoor",    "baby",     "junior",    "classic",  "digital",    "wireless",
    "solar",      "electric", "manual",     "vintage",  "modern",    "compact",  "double",     "triple",
    "organic",    "herbal",   "spiced",     "sweet",    "salted",    "smoked",   "roasted",    "frozen",
    "dried",      "fresh",    "mini",       "giant",    "slim",      "padded",   "quilted",    "striped",
    "printed",    "painted",  "woven",      "knitted",  "carved",    "cast",     "forged",     "welded",
    "inflatable", "magnetic", "adjustable", "portable", "stackable", "washable", "waterproof", "fireproof",
};
static const char *const adjectives[] = {"red",   "blue",  "green", "black", "white",  "grey", "yellow", "brown",
                                         "small", "large", "plain", "light", "bright", "dark", "soft",   "fine"};

enum {
    NOUNS = sizeof nouns / sizeof *nouns,
    QUALIFIERS = sizeof qualifiers / sizeof *qualifiers,
    ADJECTIVES = sizeof adjectives / sizeof *adjectives,
    WORD_SIZE = 64
};

/* A made-up word of three syllables. */
static void make_word(uint32_t number, char out[WORD_SIZE])
{
    static const char consonants[] = "bdfgklmnprstvz", vowels[] = "aeiou";
    for (int i = 0; i < 3; i++) {
        out[2 * i] = consonants[number % 14];
        number /= 14;
        out[2 * i + 1] = vowels[number % 5];
        number /= 5;
    }
    out[6] = 0;
}

/* "copper kettle"; beyond all pairs of words with a number. */
static void category_text(int32_t category, char out[WORD_SIZE])
{
    int32_t pair = category % (NOUNS * QUALIFIERS), round = category / (NOUNS * QUALIFIERS);
    const char *noun = nouns[pair % NOUNS], *qualifier = qualifiers[(pair / NOUNS + pair) % QUALIFIERS];
    if (round == 0)
        snprintf(out, WORD_SIZE, "%s %s", qualifier, noun);
    else
        snprintf(out, WORD_SIZE, "%s %s %d", qualifier, noun, round + 1);
}

lapse_status lp_goods_write_events(lp_writer *writer, const lapse_simulation *simulation, lapse_error *error)
{
    char name[LP_SIMULATE_NAME_SIZE], category[WORD_SIZE];
    LP_TRY(lp_writer_print(writer, error, "user,time,item,category\n"));
    for (int64_t user = 0; user < simulation->sequence_count; user++) {
        lp_simulation_user_name(user, name);
        for (int64_t i = simulation->start[user]; i < simulation->start[user + 1]; i++) {
            int32_t item = simulation->type[i];
            category_text(lp_goods_category_of(simulation->goods, item), category);
            LP_TRY(
                lp_writer_print(writer, error, "%s,%.3f,i%d,%s\n", name, simulation->time[i], (int)item + 1, category));
        }
    }
    return LAPSE_OK;
}

lapse_status lp_goods_write(lp_writer *writer, const lp_goods *goods, lapse_error *error)
{
    char category[WORD_SIZE], series[WORD_SIZE], brand[WORD_SIZE];
    LP_TRY(lp_writer_print(writer, error, "item,name,brand,category\n"));
    for (int32_t c = 0; c < goods->category_count; c++) {
        const lp_goods_category *range = &goods->categories[c];
        category_text(c, category);
        for (int32_t item = range->first; item < range->first + range->count; item++) {
            make_word(hash(goods, OF_SERIES_NAME, range->first + (int64_t)series_of(goods, c, item)), series);
            int32_t number = range->department * LP_GOODS_BRANDS + lp_goods_brand(goods, c, item);
            make_word(hash(goods, OF_DEPARTMENT, number), brand);
            LP_TRY(lp_writer_print(writer, error, "i%d,%s %s %s,%c%s,%s\n", (int)item + 1,
                                   adjectives[hash(goods, OF_ADJECTIVE, item) % ADJECTIVES], series, category,
                                   brand[0] - 'a' + 'A', brand + 1, category));
        }
    }
    return LAPSE_OK;
}
