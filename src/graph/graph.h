/* graph.h: what a model computes, as values and nodes.
 *
 * Every value is a matrix. Its rows are the tokens (events) of all segments of a shard laid end to end, or a fixed
 * number; its columns are fixed by the model. A node is one use of an op: values in, values out. A model builds its
 * graph once, gradients are added as further nodes of the same graph (gradient.c), a planner gives every value its
 * place (plan.h), and a backend replays the nodes in order for every shard of every step.
 *
 * Building cannot fail halfway: after a mistake or out of memory every further call returns NULL, and
 * lp_graph_status tells the first reason.
 */
#ifndef LP_GRAPH_H
#define LP_GRAPH_H

#include "base/error.h"
#include "base/memory.h"

typedef enum lp_type {
    LP_TYPE_REAL,  /* float, or double in the backend that checks gradients */
    LP_TYPE_INT32, /* ids */
    LP_TYPE_DOUBLE /* times, frequencies and their gradients */
} lp_type;

/* What the rows of a value are. All but FIXED differ from shard to shard. */
typedef enum lp_rows {
    LP_ROWS_FIXED,
    LP_ROWS_TOKENS,  /* the events of all segments, laid end to end */
    LP_ROWS_TARGETS, /* the tokens after which the model is asked what comes: answers and losses are made there alone */
    LP_ROWS_ITEMS, /* the distinct items of the shard, where it has a small catalogue of its own (data/batch/batch_vocabulary.h) */
    LP_ROWS_PAST, /* events whose keys and values a session has kept (op recall) */
    LP_ROWS_COUNT
} lp_rows;

typedef enum lp_storage {
    LP_STORAGE_INPUT,     /* given by the caller of a run: slot says which of its pointers */
    LP_STORAGE_PARAMETER, /* in the model's block of parameters at offset (elements) */
    LP_STORAGE_GRADIENT,  /* in the shard's block of parameter gradients at offset (elements) */
    LP_STORAGE_TABLE_ROWS, /* gradients of a table's rows: in the shard's block of those, behind `offset` columns of others */
    LP_STORAGE_WORK        /* in the worker's buffer at offset (bytes), given by the planner */
} lp_storage;

typedef struct lp_node lp_node;
typedef struct lp_value lp_value;

struct lp_value {
    int id;
    const char *name; /* parameters and inputs; otherwise the op's name */
    lp_type type;
    lp_storage storage;
    lp_rows rows_of;
    int rows; /* where rows_of is LP_ROWS_FIXED */
    int cols;
    int limit;        /* ids: every element is below this (0: not said) */
    lp_rows limit_of; /* ids of rows that differ from shard to shard: below their number */
    int slot;         /* inputs: which; tables: columns of those before it */
    size_t offset;
    bool requires_grad; /* a gradient flows here: a parameter, or made from one */
    bool constant;      /* an input that is the same in every run */
    bool kept;          /* read by the caller after the run: its place is never used again */
    lp_node *producer;
    lp_value *gradient;   /* once lp_graph_gradients has run */
    lp_node *passed_from; /* as a gradient: the node whose rule last handed it on unchanged */
};

enum { LP_NODE_INPUTS = 10, LP_NODE_OUTPUTS = 5 };

/* Who sees whom in the network of a flow (op mask). */
typedef enum lp_order {
    LP_ORDER_EACH,  /* each variable those before it */
    LP_ORDER_UPPER, /* the upper half the lower one */
    LP_ORDER_LOWER  /* the lower half the upper one */
} lp_order;

typedef enum lp_mask_layer { LP_LAYER_FIRST, LP_LAYER_MIDDLE, LP_LAYER_LAST, LP_LAYER_BIAS } lp_mask_layer;

/* The settings an op may have. Each op says which it reads. */
typedef struct lp_attributes {
    int heads;
    bool transpose;
    int capacity; /* remember: events that there is room for */
    int harmonics;
    double rate; /* chance that an element is dropped */
    double scale;
    double epsilon;
    double shift;
    bool uniform;        /* noise: on (0, 1), otherwise standard normal */
    int units;           /* mask: variables of the flow */
    lp_order order;      /* mask: which of them may see which */
    lp_mask_layer layer; /* mask: where the matrix stands */
    uint32_t stream;     /* which random numbers: equal for an op and its gradient */
} lp_attributes;

struct lp_node {
    const struct lp_op *op;
    lp_value *inputs[LP_NODE_INPUTS];   /* NULL: optional and absent */
    lp_value *outputs[LP_NODE_OUTPUTS]; /* NULL: not wanted */
    uint32_t accumulate;                /* bit i: add to outputs[i] instead of writing it */
    lp_attributes with;
};

/* Parameters begin at multiples of so many elements. */
enum { LP_PARAMETER_ALIGN = 16 };

/* How a parameter starts. */
typedef enum lp_initializer {
    LP_INIT_ZEROS,
    LP_INIT_ONES,
    LP_INIT_UNIFORM,
    LP_INIT_NORMAL,
    LP_INIT_VALUES,
    LP_INIT_SINUSOID, /* column c of row p: the sine (c even) or cosine of p / 10000^((c - c mod 2) / cols) */
    LP_INIT_LOG_POWER /* the log of a positive number whose power is uniform between those of two others */
} lp_initializer;

typedef struct lp_parameter {
    lp_value *value;
    lp_initializer start;
    double spread;        /* half width of UNIFORM, deviation of NORMAL, the power of LOG_POWER */
    const double *values; /* of VALUES; the two others of LOG_POWER; in the graph's arena */
    double rate;          /* of the optimizer's steps, as a share of the others'; 0: it must not change it */
    bool table;           /* rows are read through gather alone, and its gradient is a list of rows */
} lp_parameter;

typedef struct lp_graph {
    lp_arena arena;
    lapse_error error; /* the first mistake; LAPSE_OK while there is none */
    lp_value **values;
    int value_count;
    lp_node **nodes; /* in the order they run */
    int node_count;
    lp_parameter *parameters; /* in the order of the model file */
    int parameter_count;
    size_t parameter_size; /* elements in all */
    size_t table_size;     /* elements of tables, which come first */
    int table_cols;        /* columns of all tables together */
    int input_count;
    uint32_t stream_count; /* random streams handed out */
    lp_node *rule;         /* while gradients are added: the node whose rule runs */
} lp_graph;

/* A graph starts as {0}. */
void lp_graph_clear(lp_graph *graph);
lapse_status lp_graph_status(const lp_graph *graph, lapse_error *error);

/* Leaves. Names live in the graph's arena after the call. */
lp_value *lp_graph_input(lp_graph *graph, const char *name, lp_type type, lp_rows rows_of, int rows, int cols);
lp_value *lp_graph_parameter(lp_graph *graph, const char *name, int rows, int cols, lp_initializer start,
                             double spread);
lp_value *lp_graph_parameter_values(lp_graph *graph, const char *name, int rows, int cols, const double *values);
lp_value *lp_graph_parameter_log_power(lp_graph *graph, const char *name, int rows, int cols, double power, double low,
                                       double high);
/* A table: a parameter of so many rows that no node may work on all of them. Tables are declared before all other
 * parameters. */
lp_value *lp_graph_table(lp_graph *graph, const char *name, int rows, int cols, lp_initializer start, double spread);
/* The same as a parameter of another graph, which no node of this one learns. */
lp_value *lp_graph_parameter_like(lp_graph *graph, const lp_parameter *other);
/* The optimizer changes the parameter at this share of its rate. Returns value. */
lp_value *lp_graph_parameter_rate(lp_graph *graph, lp_value *value, double rate);
/* The parameter is part of the model, but neither a gradient nor the optimizer changes it. Returns value. */
lp_value *lp_graph_parameter_freeze(lp_graph *graph, lp_value *value);

/* One node. inputs holds the op's inputs (NULL for absent optional ones) and has op->input_count elements. Returns the
 * node with its outputs made, or NULL. */
lp_node *lp_graph_node(lp_graph *graph, const struct lp_op *op, lp_value *const *inputs, const lp_attributes *with);

/* Puts a node of this graph behind the others, for those who write the list of nodes anew. */
void lp_graph_append(lp_graph *graph, lp_node *node);

/* A stream of random numbers no other node of this graph has. */
uint32_t lp_graph_stream(lp_graph *graph);

/* Adds the nodes that compute the gradient of sum(outputs[i] * seeds[i]) by every parameter. A seed has its output's
 * shape. Afterwards value->gradient is set wherever a gradient flows. */
lapse_status lp_graph_gradients(lp_graph *graph, int count, lp_value *const *outputs, lp_value *const *seeds,
                                lapse_error *error);

/* Writes the graph as text, one node a line with its shapes, for people. */
bool lp_graph_dump(const lp_graph *graph, lp_buffer *out);

/* Zeroed memory that lives as long as the graph; NULL (and the graph's status says so) when there is none. */
void *lp_graph_alloc(lp_graph *graph, size_t size);

/* For the rules of ops. Reports the first mistake of the graph and returns NULL. */
void *lp_graph_mistake(lp_graph *graph, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For gradient rules: a node whose output i (wherever targets[i] is a value that learns) adds to the gradient of
 * targets[i]. Targets that do not learn, or NULL, give an output that is not wanted. */
lp_node *lp_graph_gradient_node(lp_graph *graph, const struct lp_op *op, lp_value *const *inputs,
                                const lp_attributes *with, lp_value *const *targets);

/* For gradient rules: the gradient of target is (also) just this value. */
void lp_graph_gradient_pass(lp_graph *graph, lp_value *target, lp_value *gradient);

static inline bool lp_value_same_shape(const lp_value *a, const lp_value *b)
{
    return a->rows_of == b->rows_of && (a->rows_of != LP_ROWS_FIXED || a->rows == b->rows) && a->cols == b->cols;
}

#endif
