/* simulate_goods.h: the item catalogue of the presets "catalogue" and "sessions": departments, categories, series and
 * items.
 *
 * Items are not stored: an item's category is found by its id, and its name, brand and release day are functions of
 * the seed and the id. So a catalogue of millions needs only the memory of its categories.
 *
 *   department  ->  category  ->  series of LP_GOODS_SERIES items  ->  item
 *
 * Ids of the items of a category are consecutive, as are those of a series; so are the categories of a department. A
 * series has one brand; a department has LP_GOODS_BRANDS brands.
 */
#ifndef LP_SIMULATE_GOODS_H
#define LP_SIMULATE_GOODS_H

#include "base/file.h"
#include "base/random.h"
#include "simulate/simulate.h"
#include "lapse_lab.h"

enum { LP_GOODS_SERIES = 10, LP_GOODS_BRANDS = 6, LP_GOODS_LEAST = 100, LP_GOODS_MOST = 20000000 };

typedef struct lp_goods_category {
    int32_t first, count; /* items */
    int32_t first_series; /* among the series of all categories */
    int32_t department;
    int32_t complement; /* category of the complements, in the same department */
    double period;      /* days until a repeat purchase; 0: no repeat purchases */
} lp_goods_category;

typedef struct lp_goods {
    uint64_t seed;
    double days; /* release days are within these */
    int32_t item_count, series_count, category_count, department_count;
    lp_goods_category *categories;                      /* owned */
    double share[LP_GOODS_SERIES + 1][LP_GOODS_SERIES]; /* [items of a series][rank]: popularity within it */
    const char *const *department_names;                /* [department_count], constants; NULL: they have none */
} lp_goods;

/* NULL when out of memory. item_count is within LP_GOODS_LEAST and LP_GOODS_MOST. departments 0: the square root of the
 * number of categories. */
lp_goods *lp_goods_new(int64_t item_count, int32_t departments, double days, uint64_t seed);
void lp_goods_free(lp_goods *goods);

int32_t lp_goods_category_of(const lp_goods *goods, int32_t item);

/* Series of an item, 0 .. series_count - 1; category of a series; and the items of a series, which are consecutive. */
int32_t lp_goods_series_of(const lp_goods *goods, int32_t item);
int32_t lp_goods_series_category(const lp_goods *goods, int32_t series);
int32_t lp_goods_series_items(const lp_goods *goods, int32_t series, int32_t *first);

/* A fixed series of the complement category. */
int32_t lp_goods_series_complement(const lp_goods *goods, int32_t series);

/* Fills popularity[series_count], which sums to 1: the distribution of lp_goods_sample_popular. */
void lp_goods_series_popularity(const lp_goods *goods, double *popularity);

/* Fills the popularity of the items of a series within it, which sums to 1, and returns their number. */
int32_t lp_goods_item_popularity(const lp_goods *goods, int32_t series, double popularity[LP_GOODS_SERIES]);

/* Samples a series by popularity, whatever its release days. */
int32_t lp_goods_sample_popular(const lp_goods *goods, lp_random *random);

/* Brand of an item within its department, 0 .. LP_GOODS_BRANDS - 1. */
int32_t lp_goods_brand(const lp_goods *goods, int32_t category, int32_t item);

/* Release day of an item: 0 for most, and for the first item of a category. */
double lp_goods_release(const lp_goods *goods, int32_t item);

/* Samples a category by popularity, of one department or (department -1) of all. */
int32_t lp_goods_sample_category(const lp_goods *goods, int32_t department, lp_random *random);

/* Samples an item by popularity among those of the category that are released on this day; of one brand if that is
 * not -1 and the category has it; sometimes a newly released one. */
int32_t lp_goods_sample(const lp_goods *goods, int32_t category, int32_t brand, double day, lp_random *random);

/* Samples another item of the same series that is released on this day, or returns the same item if there is none. */
int32_t lp_goods_sample_series(const lp_goods *goods, int32_t item, double day, lp_random *random);

enum { LP_GOODS_NAME_SIZE = 64 };

/* Writes the name of a category ("copper kettle") and returns out. */
const char *lp_goods_category_name(int32_t category, char out[LP_GOODS_NAME_SIZE]);

/* Writes the events of a simulation (user,time,item,category), and the items (item,name,brand,category, then the
 * department where departments have names), as CSV. */
lapse_status lp_goods_write_events(lp_writer *writer, const lapse_simulation *simulation, lapse_error *error);
/* Events of the preset "sessions": user,time,item,action,category,department. */
lapse_status lp_sessions_write_events(lp_writer *writer, const lapse_simulation *simulation, lapse_error *error);
lapse_status lp_goods_write(lp_writer *writer, const lapse_simulation *simulation, lapse_error *error);

#endif
