/* simulate_goods.c: an item catalogue as a function of its seed. Popularity follows Zipf's law with exponent 1 at
 * every level, sampled without tables: floor((n + 1)^u) - 1 is rank r with probability log((r + 2) / (r + 1)) / log(n
 * + 1). A fixed permutation maps ranks to items, so that item ids carry no information about popularity. */
#include "simulate/simulate_goods.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Purposes of random numbers: the step of the counter. */
enum { OF_SIZE = 1, OF_DEPARTMENT, OF_COMPLEMENT, OF_PERIOD, OF_RELEASE, OF_BRAND, OF_SERIES_NAME, OF_ADJECTIVE };

enum { RELEASED_AT_START = 80, ATTEMPTS = 12 };
#define NEW_DAYS 30.0     /* age in days up to which an item is new */
#define NEW_FRACTION 0.15 /* of the samples that try a new item first */
#define LARGE_PRIME 1000003

static uint32_t hash(const lp_goods *goods, uint32_t what, int64_t number)
{
    return lp_philox(goods->seed, LP_PURPOSE_GOODS, what, (uint64_t)number).word[0];
}

static double uniform_of(const lp_goods *goods, uint32_t what, int64_t number)
{
    return ((double)hash(goods, what, number) + 0.5) * 0x1p-32;
}

/* The probability of a rank in sample_rank. */
static double rank_probability(int32_t rank, int32_t count)
{
    return log((rank + 2.0) / (rank + 1.0)) / log(count + 1.0);
}

/* ---------------------------------------------------------------------------------------------- the tree ----- */

static int32_t series_in_category(const lp_goods_category *category)
{
    return (category->count + LP_GOODS_SERIES - 1) / LP_GOODS_SERIES;
}

/* Each category has at least one item. */
static void init_categories(lp_goods *goods)
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
        category->first_series = goods->series_count;
        goods->series_count += series_in_category(category);
        category->department = (int32_t)((int64_t)c * goods->department_count / goods->category_count);
        first = end;
    }
}

/* First category of a department; also valid for department_count. */
static int32_t department_first(const lp_goods *goods, int32_t department)
{
    return (int32_t)(((int64_t)department * goods->category_count + goods->department_count - 1) /
                     goods->department_count);
}

/* Sets the complement and the repeat period of each category. */
static void init_relations(lp_goods *goods)
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

lp_goods *lp_goods_new(int64_t item_count, int32_t departments, double days, uint64_t seed)
{
    lp_goods *goods = lp_alloc(1, sizeof *goods);
    if (!goods)
        return NULL;
    goods->seed = seed;
    goods->days = days;
    goods->item_count = (int32_t)item_count;
    goods->category_count = (int32_t)(1.5 * sqrt((double)item_count));
    goods->department_count = departments ? departments : (int32_t)sqrt((double)goods->category_count);
    goods->categories = lp_alloc((size_t)goods->category_count, sizeof *goods->categories);
    if (!goods->categories) {
        lp_goods_free(goods);
        return NULL;
    }
    for (int32_t count = 1; count <= LP_GOODS_SERIES; count++)
        for (int32_t r = 0; r < count; r++)
            goods->share[count][r] = rank_probability(r, count);
    init_categories(goods);
    init_relations(goods);
    return goods;
}

void lp_goods_free(lp_goods *goods)
{
    if (goods)
        lp_free(goods->categories);
    lp_free(goods);
}

/* The last category whose first item, or first series, is at most this. */
static int32_t category_at(const lp_goods *goods, int32_t index, bool of_series)
{
    int32_t low = 0, high = goods->category_count;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        const lp_goods_category *category = &goods->categories[middle];
        if ((of_series ? category->first_series : category->first) <= index)
            low = middle;
        else
            high = middle;
    }
    return low;
}

int32_t lp_goods_category_of(const lp_goods *goods, int32_t item)
{
    return category_at(goods, item, false);
}

/* Index of a series in its category. */
static int32_t series_of(const lp_goods *goods, int32_t category, int32_t item)
{
    return (item - goods->categories[category].first) / LP_GOODS_SERIES;
}

int32_t lp_goods_series_of(const lp_goods *goods, int32_t item)
{
    int32_t category = lp_goods_category_of(goods, item);
    return goods->categories[category].first_series + series_of(goods, category, item);
}

int32_t lp_goods_series_category(const lp_goods *goods, int32_t series)
{
    return category_at(goods, series, true);
}

int32_t lp_goods_series_items(const lp_goods *goods, int32_t series, int32_t *first)
{
    const lp_goods_category *category = &goods->categories[lp_goods_series_category(goods, series)];
    int32_t offset = (series - category->first_series) * LP_GOODS_SERIES;
    *first = category->first + offset;
    return category->count - offset < LP_GOODS_SERIES ? category->count - offset : LP_GOODS_SERIES;
}

int32_t lp_goods_series_complement(const lp_goods *goods, int32_t series)
{
    const lp_goods_category *category = &goods->categories[lp_goods_series_category(goods, series)];
    const lp_goods_category *complement = &goods->categories[category->complement];
    return complement->first_series + (series - category->first_series) % series_in_category(complement);
}

/* Series of a category cycle through the brands, beginning with this one. */
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
    double percentile = 100 * uniform_of(goods, OF_RELEASE, item);
    if (percentile < RELEASED_AT_START || goods->categories[lp_goods_category_of(goods, item)].first == item)
        return 0;
    return goods->days * (0.3 + 0.7 * (percentile - RELEASED_AT_START) / (100 - RELEASED_AT_START));
}

/* ------------------------------------------------------------------------------------------------- sampling -- */

static int32_t sample_rank(int32_t count, lp_random *random)
{
    int32_t rank = (int32_t)exp(lp_random_uniform(random) * log((double)count + 1)) - 1;
    return rank < count ? rank : count - 1;
}

/* Maps a rank to an index by a fixed permutation: count is not a multiple of the prime. */
static int32_t permute(int32_t rank, int32_t count, int64_t salt)
{
    return (int32_t)(((int64_t)rank * LARGE_PRIME + salt) % count);
}

int32_t lp_goods_sample_category(const lp_goods *goods, int32_t department, lp_random *random)
{
    int32_t first = department < 0 ? 0 : department_first(goods, department);
    int32_t end = department < 0 ? goods->category_count : department_first(goods, department + 1);
    return first + permute(sample_rank(end - first, random), end - first, first);
}

/* An item of a series, by popularity. */
static int32_t sample_in_series(const lp_goods *goods, int32_t category, int32_t series, lp_random *random)
{
    const lp_goods_category *c = &goods->categories[category];
    int32_t first = series * LP_GOODS_SERIES;
    int32_t count = c->count - first < LP_GOODS_SERIES ? c->count - first : LP_GOODS_SERIES;
    return c->first + first + permute(sample_rank(count, random), count, series);
}

int32_t lp_goods_sample_popular(const lp_goods *goods, lp_random *random)
{
    int32_t category = lp_goods_sample_category(goods, -1, random);
    int32_t count = series_in_category(&goods->categories[category]);
    return goods->categories[category].first_series + permute(sample_rank(count, random), count, category);
}

void lp_goods_series_popularity(const lp_goods *goods, double *popularity)
{
    for (int32_t r = 0; r < goods->category_count; r++) {
        int32_t c = permute(r, goods->category_count, 0), count = series_in_category(&goods->categories[c]);
        double share = rank_probability(r, goods->category_count);
        for (int32_t k = 0; k < count; k++)
            popularity[goods->categories[c].first_series + permute(k, count, c)] = share * rank_probability(k, count);
    }
}

int32_t lp_goods_item_popularity(const lp_goods *goods, int32_t series, double popularity[LP_GOODS_SERIES])
{
    int32_t first, count = lp_goods_series_items(goods, series, &first);
    int32_t salt = series - goods->categories[lp_goods_series_category(goods, series)].first_series;
    for (int32_t r = 0; r < count; r++)
        popularity[permute(r, count, salt)] = goods->share[count][r];
    return count;
}

static int32_t sample_once(const lp_goods *goods, int32_t category, int32_t brand, lp_random *random)
{
    int32_t count = series_in_category(&goods->categories[category]);
    int32_t offset = (brand - first_brand(goods, category) + LP_GOODS_BRANDS) % LP_GOODS_BRANDS;
    if (brand < 0 || offset >= count)
        return sample_in_series(goods, category, permute(sample_rank(count, random), count, category), random);
    int32_t branded = (count - offset + LP_GOODS_BRANDS - 1) / LP_GOODS_BRANDS;
    int32_t cycle = permute(sample_rank(branded, random), branded, category);
    return sample_in_series(goods, category, offset + cycle * LP_GOODS_BRANDS, random);
}

/* An item of the category that was released within NEW_DAYS; -1: none was found. */
static int32_t sample_new(const lp_goods *goods, int32_t category, double day, lp_random *random)
{
    const lp_goods_category *c = &goods->categories[category];
    for (int i = 0; i < ATTEMPTS; i++) {
        int32_t item = c->first + (int32_t)lp_random_below(random, (uint32_t)c->count);
        double age = day - lp_goods_release(goods, item);
        if (age >= 0 && age < NEW_DAYS && age < day)
            return item;
    }
    return -1;
}

int32_t lp_goods_sample(const lp_goods *goods, int32_t category, int32_t brand, double day, lp_random *random)
{
    int32_t item = lp_random_uniform(random) < NEW_FRACTION ? sample_new(goods, category, day, random) : -1;
    for (int i = 0; item < 0 && i < ATTEMPTS; i++) {
        int32_t sampled = sample_once(goods, category, brand, random);
        item = lp_goods_release(goods, sampled) <= day ? sampled : -1;
    }
    return item < 0 ? goods->categories[category].first : item;
}

int32_t lp_goods_sample_series(const lp_goods *goods, int32_t item, double day, lp_random *random)
{
    int32_t category = lp_goods_category_of(goods, item), series = series_of(goods, category, item);
    for (int i = 0; i < ATTEMPTS; i++) {
        int32_t sampled = sample_in_series(goods, category, series, random);
        if (sampled != item && lp_goods_release(goods, sampled) <= day)
            return sampled;
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
    ADJECTIVES = sizeof adjectives / sizeof *adjectives
};

/* A pseudo-word of three syllables. */
static void make_word(uint32_t number, char out[LP_GOODS_NAME_SIZE])
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

/* "copper kettle"; with a number once all pairs of words are used. */
const char *lp_goods_category_name(int32_t category, char out[LP_GOODS_NAME_SIZE])
{
    int32_t pair = category % (NOUNS * QUALIFIERS), round = category / (NOUNS * QUALIFIERS);
    const char *noun = nouns[pair % NOUNS], *qualifier = qualifiers[(pair / NOUNS + pair) % QUALIFIERS];
    if (round == 0)
        snprintf(out, LP_GOODS_NAME_SIZE, "%s %s", qualifier, noun);
    else
        snprintf(out, LP_GOODS_NAME_SIZE, "%s %s %d", qualifier, noun, round + 1);
    return out;
}

lapse_status lp_goods_write_events(lp_writer *writer, const lapse_simulation *simulation, lapse_error *error)
{
    char name[LP_SIMULATE_NAME_SIZE], category[LP_GOODS_NAME_SIZE];
    LP_TRY(lp_writer_print(writer, error, "user,time,item,category\n"));
    for (int64_t user = 0; user < simulation->sequence_count; user++) {
        lp_simulation_user_name(user, name);
        for (int64_t i = simulation->start[user]; i < simulation->start[user + 1]; i++) {
            int32_t item = simulation->type[i];
            lp_goods_category_name(lp_goods_category_of(simulation->goods, item), category);
            LP_TRY(
                lp_writer_print(writer, error, "%s,%.3f,i%d,%s\n", name, simulation->time[i], (int)item + 1, category));
        }
    }
    return LAPSE_OK;
}

lapse_status lp_goods_write(lp_writer *writer, const lapse_simulation *simulation, lapse_error *error)
{
    const lp_goods *goods = simulation->goods;
    char category[LP_GOODS_NAME_SIZE], series[LP_GOODS_NAME_SIZE], brand[LP_GOODS_NAME_SIZE];
    const char *const *departments = goods->department_names;
    LP_TRY(lp_writer_print(writer, error, "item,name,brand,category%s\n", departments ? ",department" : ""));
    for (int32_t c = 0; c < goods->category_count; c++) {
        const lp_goods_category *range = &goods->categories[c];
        lp_goods_category_name(c, category);
        for (int32_t item = range->first; item < range->first + range->count; item++) {
            make_word(hash(goods, OF_SERIES_NAME, range->first + (int64_t)series_of(goods, c, item)), series);
            int32_t number = range->department * LP_GOODS_BRANDS + lp_goods_brand(goods, c, item);
            make_word(hash(goods, OF_DEPARTMENT, number), brand);
            LP_TRY(lp_writer_print(writer, error, "i%d,%s %s %s,%c%s,%s%s%s\n", (int)item + 1,
                                   adjectives[hash(goods, OF_ADJECTIVE, item) % ADJECTIVES], series, category,
                                   brand[0] - 'a' + 'A', brand + 1, category, departments ? "," : "",
                                   departments ? departments[range->department] : ""));
        }
    }
    return LAPSE_OK;
}
