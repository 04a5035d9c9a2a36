/* simulate_goods.h: the item catalogue of the preset "catalogue": departments, categories, series and items.
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
#include "data/simulate/simulate.h"

enum { LP_GOODS_SERIES = 10, LP_GOODS_BRANDS = 6, LP_GOODS_LEAST = 100, LP_GOODS_MOST = 20000000 };

typedef struct lp_goods_category {
    int32_t first, count; /* items */
    int32_t department;
    int32_t complement; /* category of the complements, in the same department */
    double period;      /* days until a repeat purchase; 0: no repeat purchases */
} lp_goods_category;

typedef struct lp_goods {
    uint64_t seed;
    double days; /* release days are within these */
    int32_t item_count, category_count, department_count;
    lp_goods_category *categories; /* owned */
} lp_goods;

/* NULL when out of memory. item_count is within LP_GOODS_LEAST and LP_GOODS_MOST. */
lp_goods *lp_goods_new(int64_t item_count, double days, uint64_t seed);
void lp_goods_free(lp_goods *goods);

int32_t lp_goods_category_of(const lp_goods *goods, int32_t item);

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

/* Writes the events of a simulation (user,time,item,category), and the items (item,name,brand,category), as CSV. */
lapse_status lp_goods_write_events(lp_writer *writer, const lapse_simulation *simulation, lapse_error *error);
lapse_status lp_goods_write(lp_writer *writer, const lapse_simulation *simulation, lapse_error *error);

#endif
