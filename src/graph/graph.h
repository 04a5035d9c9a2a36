/* graph.h: the computation graph: values and nodes.
 *
 * Every value is a matrix. Its rows are the tokens (events) of all segments of a shard, packed end to end without padding,
 * or a fixed number; its columns are fixed by the model. A node is one use of an op. A model builds its graph once,
 * lp_graph_gradients appends the backward nodes to the same graph, the planner assigns offsets in the work buffer
 * (plan.h), and a backend runs the nodes for every shard of every step.
 *
 * Errors are sticky: after an invalid call or out of memory every further call returns NULL, and lp_graph_status returns
 * the first error.
 */
#ifndef LP_GRAPH_H
#define LP_GRAPH_H

#include "base/error.h"
#include "base/memory.h"
#include "formula/loss.h"

typedef enum lp_type {
    LP_TYPE_REAL,  /* float, or double in the backend that checks gradients */
    LP_TYPE_INT32, /* ids */
    LP_TYPE_DOUBLE /* times, frequencies and their gradients */
} lp_type;

/* The row dimension of a value. All but FIXED differ from shard to shard. */
typedef enum lp_rows {
    LP_ROWS_FIXED,
    LP_ROWS_TOKENS,  /* the events of all segments, end to end */
    LP_ROWS_TARGETS, /* the target positions: tokens whose next event is predicted */
    LP_ROWS_LABELS,  /* the target positions whose next event is known: all, but those of right-censored gaps */
    LP_ROWS_ITEMS,   /* the shard's batch vocabulary, its distinct items (data/batch/batch_vocabulary.h) */
    LP_ROWS_PAST,    /* events in the KV cache (op attention_cached) */
    LP_ROWS_COUNT
} lp_rows;

typedef enum lp_storage {
    LP_STORAGE_INPUT,      /* lp_run.inputs[slot] */
    LP_STORAGE_PARAMETER,  /* in the parameter buffer at offset (elements) */
    LP_STORAGE_GRADIENT,   /* in the shard's buffer of dense gradients at offset (elements) */
    LP_STORAGE_TABLE_ROWS, /* in the shard's buffer of table-row gradients, after `offset` columns of other tables */
    LP_STORAGE_WORK        /* in the work buffer at offset (bytes), set by the planner */
} lp_storage;

typedef struct lp_node lp_node;
typedef struct lp_value lp_value;

struct lp_value {
    int id;
    const char *name; /* of the parameter or input; otherwise of the op */
    lp_type type;
    lp_storage storage;
    lp_rows rows_of;
    int rows; /* if rows_of is LP_ROWS_FIXED */
    int cols;
    int limit;        /* ids: exclusive upper bound (0: unknown) */
    lp_rows limit_of; /* ids into rows that differ from shard to shard: the bound is their number */
    int slot;         /* inputs: index in lp_run.inputs; tables: columns of the tables before it */
    size_t offset;
    bool requires_grad; /* a trained parameter, or computed from one */
    bool constant;      /* an input with the same data in every run */
    bool retained;      /* read by the caller after the run: the planner does not reuse its bytes */
    bool optional;      /* the planner may leave it out (plan.h); its readers then compute it again */
    lp_node *producer;
    lp_value *gradient;   /* set by lp_graph_gradients */
    lp_node *passed_from; /* of a gradient: the node whose gradient rule last passed it on unchanged */
};

enum { LP_NODE_INPUTS = 11, LP_NODE_OUTPUTS = 5 };

/* Which variables the network of a normalizing flow conditions on (op mask). */
typedef enum lp_order {
    LP_ORDER_AUTOREGRESSIVE, /* each variable on those before it */
    LP_ORDER_COUPLING_UPPER, /* the upper half on the lower one */
    LP_ORDER_COUPLING_LOWER  /* the lower half on the upper one */
} lp_order;

typedef enum lp_mask_layer { LP_LAYER_FIRST, LP_LAYER_MIDDLE, LP_LAYER_LAST, LP_LAYER_BIAS } lp_mask_layer;

/* Attributes of a node; each op reads some of them. */
typedef struct lp_attributes {
    int heads;
    bool transpose;
    int harmonics;
    int height;  /* of a convolution or maximum: tokens that it covers */
    double rate; /* dropout probability */
    double scale;
    double epsilon;
    double shift;
    bool uniform;          /* noise: uniform on (0, 1), otherwise standard normal */
    bool independent;      /* noise: not stratified */
    int units;             /* mask: number of variables of the flow */
    lp_order order;        /* mask */
    lp_mask_layer layer;   /* mask: which layer the matrix belongs to */
    lp_loss loss;          /* sampled_loss: one of LP_SAMPLED_LOSSES */
    double regularization; /* sampled_loss: of the scores, with bpr-max */
    lp_score_rule score;   /* sampled_loss */
    int first, cols;       /* place_columns */
    uint32_t stream;       /* random stream: the same for an op and its gradient */
} lp_attributes;

struct lp_node {
    const struct lp_op *op;
    lp_value *inputs[LP_NODE_INPUTS];   /* NULL: absent optional input */
    lp_value *outputs[LP_NODE_OUTPUTS]; /* NULL: unused */
    uint32_t accumulate;                /* bit i: add to outputs[i] instead of overwriting it */
    lp_attributes attributes;
};

/* Alignment of parameters, in elements. */
enum { LP_PARAMETER_ALIGN = 16 };

typedef enum lp_initializer {
    LP_INIT_ZEROS,
    LP_INIT_ONES,
    LP_INIT_UNIFORM,
    LP_INIT_NORMAL,
    LP_INIT_UNIT, /* each row is a random unit vector */
    LP_INIT_VALUES,
    LP_INIT_SINUSOID, /* column c of row p: the sine (c even) or cosine of p / 10000^((c - c mod 2) / cols) */
    LP_INIT_LOG_POWER /* log x, where x^power is uniform between low^power and high^power */
} lp_initializer;

typedef struct lp_parameter {
    lp_value *value;
    lp_initializer initializer;
    double spread;        /* half width of UNIFORM, standard deviation of NORMAL, power of LOG_POWER */
    const double *values; /* of VALUES; low and high of LOG_POWER; in the graph's arena */
    double rate;          /* learning-rate multiplier; 0: frozen */
    bool table;           /* read only by gather; its gradient is a list of rows */
    bool unit_ball;       /* of a table: each row that a step changes is scaled back into the unit ball */
    bool items;           /* has a row per item: may be divided among ranks (model/item_rows.h) */
} lp_parameter;

typedef struct lp_graph {
    lp_arena arena;
    lapse_error error; /* the first error, or LAPSE_OK */
    lp_value **values;
    int value_count;
    lp_node **nodes; /* in execution order */
    int node_count;
    lp_parameter *parameters; /* in the order of the model file */
    int parameter_count;
    size_t parameter_size; /* elements */
    size_t table_size;     /* elements of tables, which come first */
    int table_cols;        /* columns of all tables together */
    int input_count;
    uint32_t stream_count; /* random streams allocated */
    lp_node *rule;         /* during lp_graph_gradients: the node whose gradient rule runs */
} lp_graph;

/* Initialize a graph with {0}. */
void lp_graph_clear(lp_graph *graph);
lapse_status lp_graph_status(const lp_graph *graph, lapse_error *error);

/* Leaves. Names are copied into the graph's arena. A parameter that is declared again, with the same name and shape, is the
 * first one: two parts of a network share it. */
lp_value *lp_graph_input(lp_graph *graph, const char *name, lp_type type, lp_rows rows_of, int rows, int cols);
lp_value *lp_graph_parameter(lp_graph *graph, const char *name, int rows, int cols, lp_initializer initializer,
                             double spread);
lp_value *lp_graph_parameter_values(lp_graph *graph, const char *name, int rows, int cols, const double *values);
lp_value *lp_graph_parameter_log_power(lp_graph *graph, const char *name, int rows, int cols, double power, double low,
                                       double high);
/* A table: a parameter too large for dense gradients; only gather reads it. Declare tables before all other
 * parameters. */
lp_value *lp_graph_table(lp_graph *graph, const char *name, int rows, int cols, lp_initializer initializer,
                         double spread);
/* A copy of a parameter of another graph, frozen in this one. */
lp_value *lp_graph_parameter_like(lp_graph *graph, const lp_parameter *other);
/* Sets the learning-rate multiplier of a parameter. Returns value. */
lp_value *lp_graph_parameter_rate(lp_graph *graph, lp_value *value, double rate);
/* Keeps the rows of a table in the unit ball. Returns value. */
lp_value *lp_graph_table_unit_ball(lp_graph *graph, lp_value *value);
/* Marks a parameter that has a row per item. Returns value. */
lp_value *lp_graph_parameter_items(lp_graph *graph, lp_value *value);
/* Freezes a parameter: no gradient, no update. Returns value. */
lp_value *lp_graph_parameter_freeze(lp_graph *graph, lp_value *value);

/* Appends a node. inputs has op->input_count elements, NULL for absent optional ones. Returns output 0, whose
 * producer is the node, or NULL. */
lp_value *lp_graph_node(lp_graph *graph, const struct lp_op *op, lp_value *const *inputs,
                        const lp_attributes *attributes);

/* Appends an existing node of this graph, for passes that rebuild the node list. */
void lp_graph_append(lp_graph *graph, lp_node *node);

/* Allocates a random stream, unique in this graph. */
uint32_t lp_graph_stream(lp_graph *graph);

/* Appends the nodes that compute the gradient of sum(outputs[i] * seeds[i]) with respect to every parameter. A seed has
 * the shape of its output. Afterwards value->gradient is set wherever a gradient flows. */
lapse_status lp_graph_gradients(lp_graph *graph, int count, lp_value *const *outputs, lp_value *const *seeds,
                                lapse_error *error);

/* Prints the graph, one node per line with shapes. */
bool lp_graph_dump(const lp_graph *graph, lp_buffer *out);

/* Zeroed memory with the lifetime of the graph; NULL sets the graph's error. */
void *lp_graph_alloc(lp_graph *graph, size_t size);

/* For shape and gradient rules: sets the graph's error, if it has none yet, and returns NULL. */
void *lp_graph_fail(lp_graph *graph, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For gradient rules: appends a node whose output i is added to the gradient of targets[i]. Output i is unused if
 * targets[i] is NULL or does not require a gradient. */
lp_node *lp_graph_gradient_node(lp_graph *graph, const struct lp_op *op, lp_value *const *inputs,
                                const lp_attributes *attributes, lp_value *const *targets);

/* For gradient rules: adds this value to the gradient of target, without a copy where possible. */
void lp_graph_gradient_pass(lp_graph *graph, lp_value *target, lp_value *gradient);

/* For gradient rules that can add another value to their result: takes the gradient of target, if it was passed on and nodes sum it over
 * rows, such as gradients of weights. The rule then adds it to a new gradient: added to in place, it would have to wait for these nodes,
 * which a GPU runs late. Otherwise returns NULL. */
lp_value *lp_graph_gradient_take(const lp_graph *graph, lp_value *target);

static inline bool lp_value_same_shape(const lp_value *a, const lp_value *b)
{
    return a->rows_of == b->rows_of && (a->rows_of != LP_ROWS_FIXED || a->rows == b->rows) && a->cols == b->cols;
}

#endif
