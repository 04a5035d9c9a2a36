/* test_model.c: attention models: their gradients against finite differences, their answers against the formulas written a second
 * time, and what follows from exact lags: one pass answers every question as if it were the only one; absolute time
 * does not matter; the future does not matter. */
#include "backend/cpu/cpu.h"
#include "support/graph_slope.h"
#include "support/naive_attention.h"
#include "support/small_data.h"
#include "support/small_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TOKENS = 12, TYPES = 5, PARAMETERS = 96 };
#define TEN_YEARS 315576000.0

/* Which model it is: said with what fails. */
static char what[160];

static void check_close(double got, double wanted, double bound, const char *part, int place)
{
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s, %s, element %d: %.12g, should be %.12g within %.3g", what, part, place, got, wanted, bound);
}

static void check_rows(const double *got, const double *wanted, int count, double bound, const char *part)
{
    for (int i = 0; i < count; i++)
        check_close(got[i], wanted[i], bound, part, i);
}

/* ---------------------------------------------------------------------------------- finite differences ------- */

/* The network of a model as a graph case: random leaves, its loss as the output. */
static void start_network(graph_case *this, const lp_model_config *config, int seed)
{
    lp_network network;
    lapse_error error = {0};
    *this = (graph_case){.gap = 1};
    if (lp_network_build(&network, config, true, &error) != LAPSE_OK)
        fail_msg("%s: %s", what, error.message);
    assert_true(network.graph.value_count <= CASE_VALUES);
    this->graph = network.graph;
    this->output_count = 1;
    this->outputs[0] = network.loss;
    for (int i = 0; i < this->graph.value_count; i++)
        if (strcmp(this->graph.values[i]->name, "seed") == 0)
            this->seeds[0] = this->graph.values[i];
    lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, 401);
    graph_case_segments(this, seed % 2 ? (int[]){1, 4, 2} : (int[]){6}, seed % 2 ? 3 : 1);
    graph_case_fill(this, &random);
}

static void check_gradients(const lp_model_config *config, int seed)
{
    graph_case this;
    snprintf(what, sizeof what, "%s %s, %s, %s, %d blocks, %d heads, %d dims, dropout %g, seed %d", config->row->name,
             small_encoding(config)->name, lp_projection_names[(int)small_config_get(config, "projection")],
             lp_combine_names[(int)small_config_get(config, "combine")], (int)small_config_get(config, "blocks"),
             (int)small_config_get(config, "heads"), config->dims, config->dropout, seed);
    start_network(&this, config, seed);
    graph_slope_check(&this, what, small_under_valgrind() ? 211 : small_effort(1, 37));
    graph_case_clear(&this);
}

/* Calls check for attention with every encoding, number of blocks and heads; and for every projection and combination, with each
 * encoding. */
static void for_each_network(void (*check)(const lp_model_config *config, int seed), double dropout)
{
    static const int heads[] = {1, 2, 4};
    int seed = 0;
    for (int e = 0; lp_encodings[e]; e++)
        for (int blocks = 1; blocks <= 3; blocks++)
            for (int h = 0; h < 3; h++, seed++) {
                lp_model_config config =
                    small_config(lp_encodings[e], seed % 2 && blocks < 3 ? 8 : 4, blocks, heads[h]);
                config.dropout = dropout;
                check(&config, seed);
            }
    assert_true(seed >= 27);
    for (int e = 0; lp_encodings[e]; e++)
        for (int way = 1; way < LP_PROJECTION_COUNT * LP_COMBINE_COUNT; way++, seed++) {
            lp_model_config config = small_config(lp_encodings[e], 4, 1 + way % 2, 1 + seed % 2);
            config.dropout = dropout;
            small_config_number(&config, "projection", (way % LP_PROJECTION_COUNT));
            small_config_number(&config, "combine", (way / LP_PROJECTION_COUNT));
            check(&config, seed);
        }
}

static void gradients_with_dropout(void **state)
{
    (void)state;
    for_each_network(check_gradients, 0.3);
}

static void gradients_without_dropout(void **state)
{
    (void)state;
    for (int e = 0; lp_encodings[e]; e++) {
        lp_model_config config = small_config(lp_encodings[e], 4, 1 + e % 2, 2);
        check_gradients(&config, 100 + e);
    }
}

/* Every parameter is used: none has a gradient that is zero everywhere; but for the bias of the keys, which adds the same to
 * every score of a query, and so nothing to their softmax. */
static void check_used(const lp_model_config *config, int seed)
{
    enum { DRAWS = 12 };
    double sum[PARAMETERS] = {0};
    graph_case this;
    for (int draw = 0; draw < DRAWS; draw++) { /* one draw may leave a relu silent, or ask at places without a past */
        graph_result result;
        start_network(&this, config, seed + 50 * draw);
        assert_true(this.graph.parameter_count <= PARAMETERS);
        graph_case_run(&this, sizeof(double), lp_reference_kernels_double, &result);
        for (int i = 0; i < this.graph.parameter_count; i++) {
            const lp_value *value = this.graph.parameters[i].value;
            for (int k = 0; k < value->rows * value->cols; k++)
                sum[i] += value->requires_grad ? fabs(result.gradients[value->offset + (size_t)k]) : 0;
            bool bias_of_keys = strstr(value->name, ".key.event.bias") || strstr(value->name, ".key.outer.bias");
            if (draw == DRAWS - 1 && sum[i] < 1e-6 && value->requires_grad && !bias_of_keys)
                fail_msg("%s %s: '%s' has no gradient", config->row->name, small_encoding(config)->name, value->name);
        }
        graph_result_clear(&result);
        graph_case_clear(&this);
    }
}

static void every_parameter_is_used(void **state)
{
    (void)state;
    for_each_network(check_used, 0);
}

/* ------------------------------------------------------------------------------------------- exact lags ------ */

typedef struct history {
    int32_t type[TOKENS + 1];
    double time[TOKENS + 1], query_time[TOKENS];
} history;

/* TOKENS events and the moment of one more, which is 0. */
static void draw_history(history *this, int seed, bool known)
{
    lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, 402);
    for (int i = TOKENS; i >= 0; i--) {
        this->type[i] = (int32_t)lp_random_below(&random, TYPES);
        this->time[i] = i == TOKENS ? 0 : this->time[i + 1] - (i % 4 ? 7 * lp_random_exponential(&random) : 0);
    }
    for (int i = 0; i < TOKENS; i++)
        this->query_time[i] = this->time[known ? i + 1 : i];
}

static void check_formulas(const lp_model_config *config, int seed)
{
    double wanted[TOKENS * TYPES], exact[TOKENS * TYPES], fast[TOKENS * TYPES];
    history events;
    lapse_model *model = small_model(config, (uint64_t)seed);
    snprintf(what, sizeof what, "%s %s, %s, %s, %d blocks, %d heads, %d dims, seed %d", config->row->name,
             small_encoding(config)->name, lp_projection_names[(int)small_config_get(config, "projection")],
             lp_combine_names[(int)small_config_get(config, "combine")], (int)small_config_get(config, "blocks"),
             (int)small_config_get(config, "heads"), config->dims, seed);
    for (int known = 0; known < 2; known++) {
        draw_history(&events, seed, known);
        naive_answers(model, TOKENS, events.type, events.time, events.query_time, wanted);
        small_answers(model, "reference-double", TOKENS, events.type, events.time, events.query_time, NULL, exact);
        small_answers(model, "cpu", TOKENS, events.type, events.time, events.query_time, NULL, fast);
        check_rows(exact, wanted, TOKENS * TYPES, 1e-10, "in double");
        check_rows(fast, wanted, TOKENS * TYPES, 1e-5, "cpu");
    }
    lapse_model_free(model);
}

static void answers_are_those_of_the_formulas(void **state)
{
    (void)state;
    for_each_network(check_formulas, 0);
}

/* The answer of a session that is given the first `count` events, `later` seconds from now, to a question at `until`. */
static void ask(lapse_session *session, const history *events, int count, double later, double query_time, double *out)
{
    lapse_session_clear(session);
    for (int i = 0; i < count; i++) {
        const char name[] = {(char)('a' + events->type[i]), 0};
        assert_int_equal(lapse_session_append(session, events->time[i] + later, name, NULL), LAPSE_OK);
    }
    assert_int_equal(lapse_session_predict(session, query_time + later, out, NULL), LAPSE_OK);
    for (int c = 0; c < TYPES; c++)
        out[c] = log(out[c]);
}

static lapse_session *new_session(const lapse_model *model)
{
    lapse_session *session = NULL;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    return session;
}

static void check_questions(const lp_model_config *plain, int seed)
{
    for (int known = 0; known < 2; known++) {
        lp_model_config config = *plain;
        config.target_time = !(known);
        double pass[TOKENS * TYPES], alone[TYPES], later[TYPES], cut[TOKENS * TYPES];
        history events;
        draw_history(&events, seed, known);
        lapse_model *model = small_model(&config, (uint64_t)seed);
        lapse_session *session = new_session(model);
        snprintf(what, sizeof what, "%s, %d blocks, %d heads, time %s", small_encoding(&config)->name,
                 (int)small_config_get(&config, "blocks"), (int)small_config_get(&config, "heads"),
                 known ? "known" : "unknown");
        small_answers(model, "cpu", TOKENS, events.type, events.time, events.query_time, NULL, pass);
        for (int q = 0; q < TOKENS; q++) {
            ask(session, &events, q + 1, 0, events.time[q + 1], alone);
            /* Anchored times are those of a question at the window's end. */
            if (!small_anchored(&config) || (q == TOKENS - 1 && known))
                check_rows(alone, pass + (ptrdiff_t)q * TYPES, TYPES, 1e-5, "asked alone");
            ask(session, &events, q + 1, 1.6e9 + TEN_YEARS, events.time[q + 1], later);
            check_rows(later, alone, TYPES, 1e-4, "ten years later");
            small_answers(model, "cpu", q + 1, events.type, events.time, events.query_time, NULL, cut);
            check_rows(cut, pass, (q + 1) * TYPES, 1e-5, "cut off");
        }
        lapse_session_free(session);
        lapse_model_free(model);
    }
}

static void one_pass_answers_every_question(void **state)
{
    (void)state;
    for_each_network(check_questions, 0);
}

/* Other events and times after place q change nothing up to it. */
static void check_causality(const lp_model_config *config, int seed)
{
    double before[TOKENS * TYPES], after[TOKENS * TYPES];
    history events, other;
    draw_history(&events, seed, true);
    lapse_model *model = small_model(config, (uint64_t)seed);
    snprintf(what, sizeof what, "%s, %d blocks, %d heads", small_encoding(config)->name,
             (int)small_config_get(config, "blocks"), (int)small_config_get(config, "heads"));
    small_answers(model, "cpu", TOKENS, events.type, events.time, events.query_time, NULL, before);
    for (int q = 0; q + 1 < TOKENS; q++) {
        other = events;
        for (int i = q + 1; i < TOKENS; i++) {
            other.type[i] = (events.type[i] + 1) % TYPES;
            other.time[i] = events.time[i] + 100;
            other.query_time[i] = events.query_time[i] + 100;
        }
        small_answers(model, "cpu", TOKENS, other.type, other.time, other.query_time, NULL, after);
        check_rows(after, before, (q + 1) * TYPES, 1e-6, "before a change");
        double change = 0;
        for (int c = 0; c < TYPES; c++)
            change = fmax(change, fabs(after[(q + 1) * TYPES + c] - before[(q + 1) * TYPES + c]));
        if (change < 1e-6)
            fail_msg("%s: a change of the event asked after changes nothing", what);
    }
    lapse_model_free(model);
}

static void the_future_does_not_matter(void **state)
{
    (void)state;
    for_each_network(check_causality, 0);
}

/* With the time unknown, or unseen, the query time does not matter; otherwise it does. */
static void when_the_time_asked_about_matters(void **state)
{
    (void)state;
    for (int e = 0; lp_encodings[e]; e++)
        for (int known = 0; known < 2; known++) {
            lp_model_config config = small_config(lp_encodings[e], 8, 2, 2);
            config.target_time = !(known);
            lapse_model *model = small_model(&config, 3);
            lapse_session *session = new_session(model);
            history events;
            double now[TYPES], then[TYPES];
            draw_history(&events, 3, known);
            ask(session, &events, TOKENS, 0, 0, now);
            ask(session, &events, TOKENS, 0, 12345.678, then);
            bool same = memcmp(now, then, sizeof now) == 0;
            assert_int_equal(same, !known || !lp_encodings[e]->sees_time);
            lapse_session_free(session);
            lapse_model_free(model);
        }
}

/* Starting values are functions of the seed, and follow what each parameter asks for. */
static void starting_values(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("mercer"), 8, 1, 2);
    lapse_model *model = small_model(&config, 1);
    float one[2000] = {0}, again[2000] = {0}, other[2000] = {0};
    const lp_graph *graph = &model->network.graph;
    assert_true(graph->parameter_size <= 2000);
    lp_network_init_parameters(graph, 7, one);
    lp_network_init_parameters(graph, 7, again);
    lp_network_init_parameters(graph, 8, other);
    assert_memory_equal(one, again, graph->parameter_size * sizeof *one);
    assert_memory_not_equal(one, other, graph->parameter_size * sizeof *one);
    memcpy(model->parameters, one, graph->parameter_size * sizeof *one);
    const float *period = lp_model_tensor_find(model, "time.log_period")->data;
    assert_true(fabs(period[0] - log(0.5)) < 1e-6 && fabs(period[2] - log(40)) < 1e-6);
    assert_true(fabs(period[1] - (log(0.5) + log(40)) / 2) < 1e-6);
    const float *amplitude = lp_model_tensor_find(model, "time.amplitude")->data;
    assert_true(fabs(amplitude[0] - sqrt(0.5)) < 1e-6 && amplitude[0] == amplitude[11]);
    const lp_tensor *weight = lp_model_tensor_find(model, "block.0.query.event.weight");
    for (int i = 0; i < 64; i++)
        assert_true(fabs(((const float *)weight->data)[i]) <= 1 / sqrt(8.0));
    lapse_model_free(model);
}

/* One period starts halfway between the two, in logarithms. */
static void one_period(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("bochner"), 4, 1, 1);
    small_config_number(&config, "periods", 1);
    lapse_model *model = small_model(&config, 1);
    lp_network_init_parameters(&model->network.graph, 1, model->parameters);
    const lp_tensor *period = lp_model_tensor_find(model, "time.log_period");
    assert_int_equal(period->cols, 1);
    assert_true(fabs(*(const float *)period->data - log(sqrt(0.5 * 40))) < 1e-6);
    assert_null(lp_model_tensor_find(model, "time.amplitude"));
    lapse_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_with_dropout),
        cmocka_unit_test(gradients_without_dropout),
        cmocka_unit_test(every_parameter_is_used),
        cmocka_unit_test(answers_are_those_of_the_formulas),
        cmocka_unit_test(one_pass_answers_every_question),
        cmocka_unit_test(the_future_does_not_matter),
        cmocka_unit_test(when_the_time_asked_about_matters),
        cmocka_unit_test(starting_values),
        cmocka_unit_test(one_period),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
