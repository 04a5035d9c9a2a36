#include "backend/cuda/cuda_chain.h"
#include "backend/cuda/cuda_rows.h"
#include "backend/cuda/cuda_tile.h"

namespace
{

/* With at most HALF floats of shared memory two blocks share a multiprocessor, so that one computes while the other waits. */
enum { HALF_SHARED = 113 * 1024 / 4, MOST_SHARED = 226 * 1024 / 4, BITS = LP_CHAIN_ROWS * LP_CHAIN_COLS / 8 / 4 };
enum { VALUES = LP_CHAIN_PIECES * (LP_NODE_INPUTS + LP_NODE_OUTPUTS) };

/* ---- which nodes ---------------------------------------------------------------------------------------------- */

/* What a chain can do of an op: the outputs it makes, and the inputs that it reads row by row. */
typedef struct chain_op {
    lp_op_id id;
    unsigned outputs, by_row;
    bool in_place; /* a thread has read what is at the place of an element before it writes there */
} chain_op;

const chain_op ops[] = {{LP_OP_ADD, 1, 3, true},
                        {LP_OP_RELU, 1, 1, true},
                        {LP_OP_RELU_GRADIENT, 1, 3, true},
                        {LP_OP_MULTIPLY, 1, 3, true},
                        {LP_OP_AFFINE, 1, 1, true},
                        {LP_OP_DROPOUT, 1, 1, true},
                        {LP_OP_SCALE_COLUMNS, 1, 1, true},
                        {LP_OP_LINEAR, 1, 1 | 8, false},
                        {LP_OP_LAYER_NORM, 3, 1, true},
                        {LP_OP_LAYER_NORM_GRADIENT, 1, 1 | 4 | 8, true},
                        {LP_OP_EMBED, 1, 2, false},
                        {LP_OP_BASIS, 1, 1, false},
                        {LP_OP_REFLECT, 1, 3, true},
                        {LP_OP_REFLECT_GRADIENT, 3, 7, true}};

const chain_op *find_op(lp_op_id id)
{
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (ops[i].id == id)
            return &ops[i];
    return NULL;
}

typedef struct product {
    int heads, in, out; /* columns of a head */
} product;

product product_of(const lp_node *node)
{
    const lp_value *weight = node->inputs[1];
    int heads = node->with.heads, rows = weight->rows / heads;
    product shape = {heads, node->with.transpose ? weight->cols : rows, node->with.transpose ? rows : weight->cols};
    return shape;
}

bool suits(const lp_node *node)
{
    if (node->op->id == LP_OP_LINEAR) {
        product shape = product_of(node);
        bool begins = shape.heads == 1 || (shape.in % 4 == 0 && shape.out % 4 == 0); /* heads, where numbers are read in fours */
        return begins && shape.in <= LP_CHAIN_COLS && shape.out <= LP_CHAIN_COLS && node->inputs[1]->rows_of == LP_ROWS_FIXED;
    }
    if (node->outputs[0] == node->outputs[1])
        return false; /* one is added to the other */
    int cols = 0;
    for (int i = 0; i < node->op->output_count; i++)
        cols = node->outputs[i] && node->outputs[i]->cols > cols ? node->outputs[i]->cols : cols;
    bool narrow = node->op->id == LP_OP_LAYER_NORM || node->op->id == LP_OP_LAYER_NORM_GRADIENT ||
                  node->op->id == LP_OP_DROPOUT;
    return cols <= (narrow ? (int)LP_CHAIN_COLS : 4 * (int)LP_CHAIN_COLS);
}

/* ---- what lies where ------------------------------------------------------------------------------------------ */

/* A value in the chain. Times are numbers of pieces. */
typedef struct resident {
    const lp_value *value;
    int asked;            /* when it is copied in; -1: it is not */
    int written, last_written; /* first and last time; -1: never */
    int writes, touches;  /* pieces that write, and that touch it */
    int last_read;        /* from shared memory; -1: never */
    int place;            /* in shared memory; -1: not now */
    int stride;
} resident;

/* The weight of a product. */
typedef struct guest {
    int asked, place, size, stride; /* asked -1: this piece is no product */
} guest;

typedef struct room {
    int place, size, end; /* the last piece that needs it */
} room;

typedef struct maker {
    const lp_stage_piece *pieces;
    int count;
    const int *touches; /* by value, of all pieces there are */
    bool ahead;         /* copies begin before they are needed */
    resident values[VALUES];
    int value_count;
    guest weights[LP_CHAIN_PIECES];
    room rooms[VALUES + LP_CHAIN_PIECES];
    int room_count;
    int size; /* of shared memory: floats */
} maker;

resident *resident_of(maker *make, const lp_value *value)
{
    for (int i = 0; i < make->value_count; i++)
        if (make->values[i].value == value)
            return &make->values[i];
    resident *mine = &make->values[make->value_count++];
    resident none = {value, -1, -1, -1, 0, 0, -1, -1, tile_stride(value->cols)};
    *mine = none;
    return mine;
}

bool is_product(const maker *make, int p)
{
    return make->pieces[p].node->op->id == LP_OP_LINEAR;
}

/* When the copies for a product begin: with the product before it, so that there are always two weights at most. */
int ask_time(const maker *make, int p)
{
    int before = p - 1;
    if (!make->ahead)
        return p;
    while (before > 0 && !is_product(make, before))
        before--;
    return before > 0 ? before : 0;
}

/* Whether somebody outside the chain wants to see the value. */
bool shown(const maker *make, const resident *mine)
{
    const lp_value *value = mine->value;
    return value->place != LP_PLACE_WORK || value->kept || make->touches[value->id] != mine->touches;
}

/* Pieces for which a value that is in the device's memory too stays in shared memory for those that can read it there. */
enum { NEAR = 4 };

/* Piece p reads its row of the value as input i. */
void note_read(maker *make, int p, int i, resident *mine)
{
    bool product = is_product(make, p) && i == 0;
    if (product && mine->written < 0 && mine->asked < 0)
        mine->asked = ask_time(make, p);
    bool elsewhere = mine->written < 0 || (mine->writes == 1 && shown(make, mine));
    if (product || !elsewhere || (mine->written >= 0 && p - mine->written <= NEAR))
        mine->last_read = p;
}

void note_write(int p, resident *mine)
{
    /* What is added to something in shared memory reads it there. */
    if (mine->written >= 0 && mine->last_read > mine->last_written)
        mine->last_read = p;
    mine->written = mine->written < 0 ? p : mine->written;
    mine->last_written = p;
}

bool row_input(const lp_node *node, int i)
{
    return node->inputs[i] && node->inputs[i]->type == LP_TYPE_REAL && (find_op(node->op->id)->by_row >> i & 1);
}

/* Who touches what. */
void count_touches(maker *make)
{
    for (int p = 0; p < make->count; p++) {
        const lp_stage_piece *piece = &make->pieces[p];
        const lp_node *node = piece->node;
        for (int k = 0; k < node->op->input_count + node->op->output_count; k++) {
            int out = k - node->op->input_count;
            bool wanted = out < 0 ? row_input(node, k) : lp_piece_makes(piece, out), before = false;
            const lp_value *value = out < 0 ? node->inputs[k] : node->outputs[out];
            if (!wanted)
                continue;
            for (int i = 0; i < k; i++) {
                int other = i - node->op->input_count;
                before = before || (other < 0 ? row_input(node, i) && node->inputs[i] == value
                                              : lp_piece_makes(piece, other) && node->outputs[other] == value);
            }
            resident *mine = resident_of(make, value);
            mine->touches += !before;
            mine->writes += out >= 0;
        }
    }
}

void find_lives(maker *make)
{
    count_touches(make);
    for (int p = 0; p < make->count; p++) {
        const lp_stage_piece *piece = &make->pieces[p];
        const lp_node *node = piece->node;
        for (int i = 0; i < node->op->input_count; i++)
            if (row_input(node, i))
                note_read(make, p, i, resident_of(make, node->inputs[i]));
        for (int i = 0; i < node->op->output_count; i++)
            if (lp_piece_makes(piece, i))
                note_write(p, resident_of(make, node->outputs[i]));
        make->weights[p].asked = is_product(make, p) ? ask_time(make, p) : -1;
    }
}

/* The lowest place that is free. */
int take_room(maker *make, int size, int end)
{
    int place = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < make->room_count; i++) {
            const room *other = &make->rooms[i];
            if (place < other->place + other->size && other->place < place + size) {
                place = other->place + other->size;
                moved = true;
            }
        }
    }
    make->rooms[make->room_count++] = {place, size, end};
    make->size = place + size > make->size ? place + size : make->size;
    return place;
}

void leave_rooms(maker *make, int p)
{
    int left = 0;
    for (int i = 0; i < make->room_count; i++)
        if (make->rooms[i].end > p)
            make->rooms[left++] = make->rooms[i];
    make->room_count = left;
    for (int i = 0; i < make->value_count; i++)
        if (make->values[i].last_read <= p)
            make->values[i].place = -1;
}

/* A result may lie where an input lay that nobody reads any more. */
int take_over(maker *make, int p, const resident *mine)
{
    const lp_node *node = make->pieces[p].node;
    const chain_op *op = find_op(node->op->id);
    for (int i = 0; op->in_place && i < node->op->input_count; i++) {
        if (!node->inputs[i] || !(op->by_row >> i & 1) || node->inputs[i]->cols != mine->value->cols)
            continue;
        const resident *other = resident_of(make, node->inputs[i]);
        if (other == mine || other->place < 0 || other->last_read != p)
            continue;
        for (int k = 0; k < make->room_count; k++)
            if (make->rooms[k].place == other->place && make->rooms[k].end == p) {
                make->rooms[k].end = mine->last_read;
                return other->place;
            }
    }
    return -1;
}

void place_weight(maker *make, int p)
{
    product shape = product_of(make->pieces[p].node);
    bool transpose = make->pieces[p].node->with.transpose;
    int rows = transpose ? shape.out : shape.in, cols = transpose ? shape.in : shape.out;
    guest *weight = &make->weights[p];
    /* As the lanes of a product read it without meeting in a bank: 4 modulo 8 floats, or 8 modulo 16. */
    weight->stride = transpose ? tile_stride(cols) : (tile_pad(cols) + 7) / 16 * 16 + 8;
    weight->size = tile_pad(rows) * weight->stride;
    weight->place = take_room(make, shape.heads * weight->size, p);
}

/* What is there after piece p, and was not before. The places of values at a piece are those that it reads; where its results go is in
 * `to`, by output. */
void place_piece(maker *make, int p, int *to)
{
    const lp_stage_piece *piece = &make->pieces[p];
    for (int n = p; n < make->count; n++)
        if (make->weights[n].asked == p)
            place_weight(make, n);
    for (int i = 0; i < make->value_count; i++) {
        resident *mine = &make->values[i];
        if (mine->asked == p)
            mine->place = take_room(make, LP_CHAIN_ROWS * mine->stride, mine->last_read);
    }
    for (int i = 0; i < piece->node->op->output_count; i++) {
        to[i] = -1;
        if (!lp_piece_makes(piece, i))
            continue;
        resident *mine = resident_of(make, piece->node->outputs[i]);
        if (mine->last_read <= p)
            continue;
        to[i] = mine->place >= 0 ? mine->place : take_over(make, p, mine);
        if (to[i] < 0)
            to[i] = take_room(make, LP_CHAIN_ROWS * mine->stride, mine->last_read);
    }
}

void leave_piece(maker *make, int p, const int *to)
{
    const lp_stage_piece *piece = &make->pieces[p];
    leave_rooms(make, p);
    for (int i = 0; i < piece->node->op->output_count; i++)
        if (lp_piece_makes(piece, i) && to[i] >= 0)
            resident_of(make, piece->node->outputs[i])->place = to[i];
}

maker start(const lp_stage_piece *pieces, int count, const int *touches, bool ahead)
{
    maker make = {};
    make.pieces = pieces;
    make.count = count;
    make.touches = touches;
    make.ahead = ahead;
    find_lives(&make);
    /* The program, and the bits of dropout. */
    int steps = 0, asks = 0;
    for (int i = 0; i < make.value_count; i++)
        asks += make.values[i].asked >= 0;
    for (int p = 0; p < count; p++) {
        int heads = is_product(&make, p) ? pieces[p].node->with.heads : 1;
        steps += heads;
        asks += is_product(&make, p) ? heads : 0;
    }
    make.size = lp_cuda_chain_size(steps, asks) / (int)sizeof(float) + BITS;
    make.rooms[make.room_count++] = {0, make.size, count};
    return make;
}

int size_of(const lp_stage_piece *pieces, int count, const int *touches, bool ahead)
{
    maker make = start(pieces, count, touches, ahead);
    int to[LP_NODE_OUTPUTS];
    for (int p = 0; p < count; p++) {
        place_piece(&make, p, to);
        leave_piece(&make, p, to);
    }
    return make.size;
}

/* ---- the program ---------------------------------------------------------------------------------------------- */

/* The steps of a piece, and what it shares with others. */
typedef struct writer {
    const lp_cuda_run *run;
    maker *make;
    chain_program *program;
    bool waits; /* the piece at hand reads what was copied in */
    uintptr_t pointers; /* of all rows, combined by | */
    int cols;           /* and their columns */
} writer;

float *data_of(writer *out, const lp_value *value)
{
    float *data = (float *)lp_run_data(out->run->run, value);
    if (value->type == LP_TYPE_REAL) {
        out->pointers |= (uintptr_t)data;
        out->cols |= value->cols;
    }
    return data;
}

chain_rows rows_of(writer *out, const lp_value *value, int first)
{
    chain_rows rows = {NULL, -1, 0};
    if (!value)
        return rows;
    const resident *mine = resident_of(out->make, value);
    if (mine->place >= 0) {
        rows.place = mine->place + first;
        rows.stride = mine->stride;
        out->waits = out->waits || mine->asked >= 0;
    } else {
        rows.data = data_of(out, value) + first;
        rows.stride = value->cols;
    }
    out->cols |= first;
    return rows;
}

/* Output i of piece p. It need not be shown as long as it stays in shared memory and a later piece writes it again. */
chain_result result_of(writer *out, int p, int i, int to, int first)
{
    const lp_stage_piece *piece = &out->make->pieces[p];
    chain_result result = {{NULL, -1, 0}, NULL, -1, 0, 0, 0, 0};
    if (!lp_piece_makes(piece, i))
        return result;
    const lp_value *value = piece->node->outputs[i];
    const resident *mine = resident_of(out->make, value);
    if (piece->node->accumulate >> i & 1)
        result.old = rows_of(out, value, first);
    if (to >= 0) {
        result.place = to + first;
        result.stride = mine->stride;
        result.pad = value->cols - first;
        result.pad_end = tile_pad(value->cols) - first;
    }
    if (shown(out->make, mine) && (to < 0 || mine->last_written == p)) {
        result.keep = data_of(out, value) + first;
        result.keep_stride = value->cols;
    }
    out->cols |= first;
    return result;
}

void write_ask(writer *out, const float *from, int place, int stride, int rows, int present, int cols)
{
    chain_ask ask = {from, place, stride, cols, rows, cols, tile_pad(cols), present, 1};
    ask.width = lp_width((uintptr_t)from, cols);
    out->program->asks[out->program->ask_count++] = ask;
}

bool reads(const lp_stage_piece *piece, const lp_value *value)
{
    for (int i = 0; i < piece->node->op->input_count; i++)
        if (piece->node->inputs[i] == value)
            return true;
    return false;
}

/* The copies that begin with piece p. */
void write_asks(writer *out, int p, chain_step *step)
{
    maker *make = out->make;
    step->first_ask = out->program->ask_count;
    for (int n = p; n < make->count; n++) {
        const guest *weight = &make->weights[n];
        if (weight->asked != p)
            continue;
        const lp_node *node = make->pieces[n].node;
        product shape = product_of(node);
        int rows = node->with.transpose ? shape.out : shape.in, cols = node->with.transpose ? shape.in : shape.out;
        const float *from = (const float *)lp_run_data(out->run->run, node->inputs[1]);
        for (int h = 0; h < shape.heads; h++)
            write_ask(out, from + (size_t)h * rows * cols, weight->place + h * weight->size, weight->stride,
                      tile_pad(rows), rows, cols);
        step->late = step->late || n == p;
    }
    for (int i = 0; i < make->value_count; i++) {
        const resident *mine = &make->values[i];
        if (mine->asked != p)
            continue;
        write_ask(out, (const float *)lp_run_data(out->run->run, mine->value), mine->place, mine->stride, LP_CHAIN_ROWS,
                  -1, mine->value->cols);
        step->late = step->late || reads(&make->pieces[p], mine->value);
    }
    step->asks = out->program->ask_count - step->first_ask;
}

/* All but what a head has of its own. */
chain_step step_of(writer *out, int p, const int *to)
{
    const lp_stage_piece *piece = &out->make->pieces[p];
    const lp_node *node = piece->node;
    const chain_op *op = find_op(node->op->id);
    chain_step step = {};
    out->waits = false;
    step.op = (int)node->op->id;
    step.cols = node->outputs[0] ? node->outputs[0]->cols : node->inputs[0]->cols;
    step.scale = (float)node->with.scale;
    step.shift = (float)(op->id == LP_OP_LAYER_NORM ? node->with.epsilon : node->with.shift);
    for (int i = 0; i < 4; i++) {
        const lp_value *value = i < node->op->input_count ? node->inputs[i] : NULL;
        bool row = value && value->type == LP_TYPE_REAL && (op->by_row >> i & 1);
        step.input[i] = rows_of(out, row ? value : NULL, 0);
        if (value && !row && i < 3)
            step.whole[i] = data_of(out, value);
    }
    for (int i = 0; i < 2; i++)
        step.result[i] = result_of(out, p, i, i < node->op->output_count ? to[i] : -1, 0);
    if (op->id == LP_OP_DROPOUT) {
        step.threshold = lp_dropout_threshold(node->with.rate);
        step.purpose = lp_dropout_purpose(node->with.stream);
        step.scale = (float)(65536.0 / (65536.0 - step.threshold));
    }
    if (op->id == LP_OP_BASIS)
        step.terms = node->inputs[1]->cols;
    if (op->id == LP_OP_REFLECT || op->id == LP_OP_REFLECT_GRADIENT) {
        step.terms = node->inputs[1]->cols / 2;
        step.heads = node->inputs[0]->cols / (2 * step.terms);
        out->cols |= step.terms;
    }
    step.waits = out->waits;
    return step;
}

/* A product of several heads is a step for each. */
void write_products(writer *out, int p, const int *to, chain_step step)
{
    const lp_node *node = out->make->pieces[p].node;
    product shape = product_of(node);
    const guest *weight = &out->make->weights[p];
    step.cols = shape.out;
    step.terms = shape.in;
    step.transpose = node->with.transpose;
    step.weight_stride = weight->stride;
    step.waits = true; /* for the weight */
    for (int h = 0; h < shape.heads; h++) {
        step.weight = weight->place + h * weight->size;
        step.input[0] = rows_of(out, node->inputs[0], h * shape.in);
        step.input[3] = rows_of(out, node->inputs[3], h * shape.out);
        step.whole[2] = node->inputs[2] ? data_of(out, node->inputs[2]) + h * shape.out : NULL;
        step.result[0] = result_of(out, p, 0, to[0], h * shape.out);
        out->program->steps[out->program->count++] = step;
        step.asks = 0;
        step.late = false;
    }
}

void write_piece(writer *out, int p)
{
    int to[LP_NODE_OUTPUTS];
    place_piece(out->make, p, to);
    chain_step step = step_of(out, p, to);
    write_asks(out, p, &step);
    if (is_product(out->make, p))
        write_products(out, p, to, step);
    else
        out->program->steps[out->program->count++] = step;
    leave_piece(out->make, p, to);
}

} // namespace

unsigned lp_cuda_chain_takes(const lp_node *node, unsigned *by_row)
{
    const chain_op *op = find_op(node->op->id);
    if (!op || !suits(node))
        return 0;
    *by_row = op->by_row;
    return op->outputs;
}

bool lp_cuda_chain_fits(const lp_stage_piece *pieces, int count, const int *touches)
{
    int steps = 0;
    for (int i = 0; i < count; i++)
        steps += pieces[i].node->op->id == LP_OP_LINEAR ? pieces[i].node->with.heads : 1;
    return count <= LP_CHAIN_PIECES && steps <= LP_CHAIN_STEPS && size_of(pieces, count, touches, false) <= HALF_SHARED;
}

void lp_cuda_chain_make(const lp_stage_piece *pieces, int count, const int *touches, const lp_cuda_run *run,
                        lp_cuda_chain *chain, chain_program *program)
{
    bool ahead = size_of(pieces, count, touches, true) <= HALF_SHARED;
    maker make = start(pieces, count, touches, ahead);
    *program = chain_program();
    writer out = {run, &make, program, false, 0, 0};
    const lp_node *first = pieces[0].node;
    const lp_value *like = first->outputs[0] ? first->outputs[0] : first->inputs[0];
    for (int p = 0; p < count; p++)
        write_piece(&out, p);
    chain->program = NULL;
    chain->count = program->count;
    chain->ask_count = program->ask_count;
    chain->rows = lp_cuda_rows_of(like);
    chain->blocks = lp_blocks(lp_cuda_largest(run, like), LP_CHAIN_ROWS);
    chain->shared = make.size;
    chain->width = lp_width(out.pointers, out.cols) > 1 ? 2 : 1;
}
