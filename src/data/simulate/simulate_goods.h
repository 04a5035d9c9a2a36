/* simulate_goods.h: the catalogue behind the preset "catalogue": departments, categories, series and items.
 *
 * Nothing is stored of an item: its category is found by its number, and its name, brand and day of release are functions
 * of the seed and the number. So a catalogue of millions takes the memory of its categories.
 *
 *   department  ->  category  ->  series of LP_GOODS_SERIES items  ->  item
 *
 * Items of a category stand side by side, those of a series too; categories of a department likewise. A series is of one
 * brand, and a department has LP_GOODS_BRANDS of them.
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
    int32_t complement; /* the category whose items go with these; of the same department */
    double period;      /* days after which its items are bought again; 0: they are not */
} lp_goods_category;

typedef struct lp_goods {
    uint64_t seed;
    double days; /* over which items are released */
    int32_t item_count, category_count, department_count;
    lp_goods_category *categories; /* owned */
} lp_goods;

/* NULL when out of memory. item_count is within LP_GOODS_LEAST and LP_GOODS_MOST. */
lp_goods *lp_goods_new(int64_t item_count, double days, uint64_t seed);
void lp_goods_free(lp_goods *goods);

int32_t lp_goods_category_of(const lp_goods *goods, int32_t item);

/* The brand of an item among those of its department, 0 .. LP_GOODS_BRANDS - 1. */
int32_t lp_goods_brand(const lp_goods *goods, int32_t category, int32_t item);

/* The day from which an item can be had; most from the first on. The first item of a category always can. */
double lp_goods_release(const lp_goods *goods, int32_t item);

/* A category by its popularity, of one department or (department -1) of all. */
int32_t lp_goods_draw_category(const lp_goods *goods, int32_t department, lp_random *random);

/* An item by its popularity among those of the category that can be had on this day; of one brand where that is not -1,
 * if the category has it; now and then one that has just come out. */
int32_t lp_goods_draw(const lp_goods *goods, int32_t category, int32_t brand, double day, lp_random *random);

/* Another item of the same series that can be had on this day, or the same one where there is no other. */
int32_t lp_goods_draw_series(const lp_goods *goods, int32_t item, double day, lp_random *random);

/* Writes the events of a simulation (user,time,item,category), and the items (item,name,brand,category), as CSV. */
lapse_status lp_goods_write_events(lp_writer *writer, const lapse_simulation *simulation, lapse_error *error);
lapse_status lp_goods_write(lp_writer *writer, const lp_goods *goods, lapse_error *error);

#endif
