/* id_map.h: maps the ids of a dataset (event types, categories) to the ids of a model. */
#ifndef LP_ID_MAP_H
#define LP_ID_MAP_H

#include "data/batch/batch.h"
#include "model/model.h"

typedef struct lp_id_map {
    lp_event_columns columns;        /* with the model's ids: the dataset's own columns, or owned copies */
    void *owned[LP_FIELD_LIMIT + 2]; /* columns that were copied or standardized */
    int owned_count;
} lp_id_map;

/* Maps event types and categories by name and standardizes numbers and gaps. A field that the dataset does not have, or a name
 * that the model does not know, is an error that names it. The model and dataset must outlive the map. */
lapse_status lp_id_map_init(lp_id_map *map, const lapse_model *model, const lapse_dataset *dataset, lapse_error *error);
/* The same, but names that the model does not know become -1, without an error. There is no column of gaps: whoever leaves out
 * the unknown events knows the times between the others. */
lapse_status lp_id_map_init_lenient(lp_id_map *map, const lapse_model *model, const lapse_dataset *dataset,
                                    lapse_error *error);
void lp_id_map_clear(lp_id_map *map);

#endif
