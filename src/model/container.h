/* container.h: a file of named texts and named tensors in the safetensors format, which Python reads without Lapse.
 *
 *   8 bytes   size of the header, little endian
 *   header    JSON: {"__metadata__": {name: text, ...}, tensor: {"dtype", "shape", "data_offsets"}, ...} and spaces
 *   data      the tensors end to end, in the header's order
 *
 * The metadata's "checksum" is XXH3-64 over header and data, computed with sixteen zeros as the checksum. It detects an
 * edit anywhere in the file.
 */
#ifndef LP_CONTAINER_H
#define LP_CONTAINER_H

#include "base/file.h"
#include "base/memory.h"
#include "model/model.h"

typedef struct lp_container {
    lp_arena arena;
    lp_map map;
    lp_tensor *tensors; /* data points into the map, and may be unaligned */
    int tensor_count;
    const char **property_name, **property_value; /* without the checksum */
    int property_count;
    lapse_comm *
        comm; /* to save tensors whose rows are divided among its ranks: all of them save, and rank 0 writes; NULL: they are whole */
    struct {
        const float *data; /* an array of the graph's parameters: tensors in it are divided */
        const lp_graph *graph;
    } divided[8];
    int divided_count;
} lp_container;

/* Adds an array whose tensors are divided. NULL: nothing to do. */
void lp_container_divide(lp_container *container, const float *data, const lp_graph *graph);

/* Writes the tensors and properties of *container. */
lapse_status lp_container_save(const lp_container *container, const char *path, lapse_error *error);

/* Refuses a container with a number that is not finite, by the name of its tensor: nothing of it may be saved to path.
 * Elements are aligned. */
lapse_status lp_container_check_finite(const lp_container *container, const char *path, lapse_error *error);

/* Maps a file and validates all of it. */
lapse_status lp_container_open(lp_container *container, const char *path, lapse_error *error);
void lp_container_close(lp_container *container);

const char *lp_container_property(const lp_container *container, const char *name);
const lp_tensor *lp_container_tensor(const lp_container *container, const char *name);

/* Checks that the names of a vocabulary, which this tensor of the file holds, differ. */
lapse_status lp_container_check_names(const lp_names *names, const char *path, const char *tensor, lapse_error *error);

#endif
