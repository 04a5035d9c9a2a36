/* test_sampler.c: drawing frequencies: what is drawn, that it is learned by the gradient of the whole loss, that what
 * is fixed stays, and that several draws are averaged. */
#include "base/text.h"
#include "backend/cpu/cpu.h"
#include "model/sampler.h"
#include "support/graph_slope.h"
#include "support/small_data.h"
#include "support/small_model.h"
#include "support/small_train.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static char what[120];

/* Every sampled encoding, with every map where it has one: number `index`, until it returns false. */
static bool sampled(int index, const lp_encoding **encoding, const lp_inverse_cdf **map)
{
    *map = lp_inverse_cdfs[index > 0 ? index - 1 : 0];
    *encoding = lp_encoding_find(index > 0 ? "bochner-invcdf" : "bochner-normal");
    snprintf(what, sizeof what, "%s, %s", (*encoding)->name, *map ? (*map)->name : "");
    return *map != NULL;
}

static const char *const *inverse_cdf_names(void)
{
    static const char *names[LP_ROW_NAMES];
    return lp_row_names((const void *const *)lp_inverse_cdfs, names);
}

static void gradients(void **state)
{
    (void)state;
    const lp_encoding *encoding;
    const lp_inverse_cdf *map;
    for (int s = 0; sampled(s, &encoding, &map); s++)
        for (int count = 1; count < 9; count += 3) {
            lp_encoding_config config = {.periods = count,
                                         .period_min = 3,
                                         .period_max = 40,
                                         .inverse_cdf = lp_name_index(map->name, inverse_cdf_names()),
                                         .hidden = 5,
                                         .frequency_scale = count % 2 ? LP_SCALE_LOG : LP_SCALE_LINEAR,
                                         .independent_draws = count > 4};
            graph_case this = {.gap = 1};
            lp_random random = lp_random_start((uint64_t)count, LP_PURPOSE_TEST, 910);
            lp_value *draw = encoding->sample(&this.graph, &config, LP_SAMPLE_STEP);
            assert_non_null(draw);
            assert_int_equal(draw->rows * draw->cols, count);
            graph_case_gradients(&this, draw->producer);
            graph_case_fill(&this, &random);
            graph_slope_check(&this, what, 1);
            graph_case_clear(&this);
        }
}

/* ------------------------------------------------------------------------------------------ whole training --- */

static void start(lp_trainer *trainer, const lapse_dataset *dataset, const lapse_train_options *options)
{
    lapse_error error = {0};
    if (lp_trainer_init(trainer, dataset, options, &error) != LAPSE_OK)
        fail_msg("%s: %s", what, error.message);
}

static lapse_train_options sampled_options(const lp_encoding *encoding, const lp_inverse_cdf *map)
{
    lapse_train_options options = small_train_options();
    small_set(&options, "encoding", encoding->name);
    small_set(&options, "inverse-cdf", map->name);
    small_set_number(&options, "hidden", 6);
    small_set_number(&options, "periods", 5);
    /* A small network, for finite differences in float. */
    small_set_number(&options, "blocks", 1);
    small_set_number(&options, "dims", 16);
    small_set(&options, "gap-input", "off");
    options.model.dropout = 0;
    options.run.clip = 0;
    return options;
}

/* The loss of the first step, and its gradient in trainer->adam.gradients. The rate is too small to change anything. */
static double first_loss(lp_trainer *trainer)
{
    trainer->state = (lp_trainer_state){0};
    lp_trainer_step(trainer);
    return trainer->state.loss / (double)trainer->state.targets;
}

/* Along the gradient of the sampler's parameters, the loss must grow by as much as the gradient is long. It goes
 * through noise, map, draw, frequencies and attention, and comes back through all shards. */
static void the_whole_loss_is_learned_from(void **state)
{
    (void)state;
    const lp_encoding *encoding;
    const lp_inverse_cdf *map;
    lapse_dataset *dataset = small_train_data(4);
    for (int s = 0; sampled(s, &encoding, &map); s++) {
        lapse_train_options options = sampled_options(encoding, map);
        options.run.learning_rate = 1e-12;
        lp_trainer trainer;
        start(&trainer, dataset, &options);
        assert_int_equal(lp_trainer_epoch(&trainer, NULL), LAPSE_OK);
        first_loss(&trainer);
        size_t first = trainer.sampler.first_offset, size = trainer.sampler.step.graph.parameter_size;
        size_t network_size = trainer.network.graph.parameter_size * sizeof(float);
        float *start_values = lp_alloc(network_size, 1);
        assert_non_null(start_values);
        memcpy(start_values, trainer.parameters, network_size);
        double length = 0, direction[2000], loss[2];
        assert_true(size <= 2000);
        for (size_t i = 0; i < size; i++)
            length += (double)trainer.adam.gradients[first + i] * trainer.adam.gradients[first + i];
        length = sqrt(length);
        for (size_t i = 0; i < size; i++)
            direction[i] = trainer.adam.gradients[first + i] / length;
        /* A long step is bent, a short one is rounded: one between them must agree. */
        bool agrees = false;
        double slope = 0;
        for (double step = 2e-3; !agrees && step > 5e-5; step /= 2) {
            for (int side = 0; side < 2; side++) {
                memcpy(trainer.parameters, start_values, network_size);
                for (size_t i = 0; i < size; i++)
                    trainer.parameters[first + i] += (float)((side ? -1 : 1) * step * direction[i]);
                loss[side] = first_loss(&trainer);
            }
            slope = (loss[0] - loss[1]) / (2 * step);
            agrees = length > 1e-4 && fabs(slope - length) <= 0.01 * length;
        }
        if (!agrees)
            fail_msg("%s: the loss grows by %.6g along a gradient of %.6g", what, slope, length);
        lp_free(start_values);
        lp_trainer_clear(&trainer);
    }
    lapse_dataset_close(dataset);
}

/* ----------------------------------------------------------------------------------------- what is drawn ----- */

static void draws(void **state)
{
    (void)state;
    const lp_encoding *encoding;
    const lp_inverse_cdf *map;
    lapse_dataset *dataset = small_train_data(4);
    for (int s = 0; sampled(s, &encoding, &map); s++) {
        lapse_train_options options = sampled_options(encoding, map);
        small_set_number(&options, "frequency-samples", 3);
        small_set_number(&options, "period-min", 10);
        small_set_number(&options, "period-max", 1000);
        lp_trainer trainer;
        start(&trainer, dataset, &options);
        float *row = trainer.parameters + trainer.sampler.sample_offset, stored[3][5], step[3][5];
        assert_int_equal(trainer.sampler.samples, 3);
        memcpy(stored, row, sizeof stored); /* they are there from the start */
        for (int i = 0; i < 15; i++)
            assert_true(isfinite(row[i]) && row[i] > log(1) && row[i] < log(10000));
        assert_memory_not_equal(stored[0], stored[1], sizeof stored[0]);
        assert_memory_not_equal(stored[1], stored[2], sizeof stored[0]);
        for (uint32_t i = 0; i < 3; i++) {
            lp_sampler_draw(&trainer.sampler, options.run.seed, i, trainer.parameters);
            memcpy(step[i], row, sizeof step[i]);
            assert_memory_not_equal(step[i], stored[i], sizeof step[i]);
            assert_memory_equal(row + 5, stored[1], 2 * sizeof stored[1]); /* only the first is used in training */
        }
        assert_memory_not_equal(step[0], step[1], sizeof step[0]);
        lp_sampler_draw(&trainer.sampler, options.run.seed, 1, trainer.parameters);
        assert_memory_equal(row, step[1], sizeof step[1]);
        lp_sampler_draw(&trainer.sampler, options.run.seed + 1, 1, trainer.parameters);
        assert_memory_not_equal(row, step[1], sizeof step[1]);
        lp_sampler_store(&trainer.sampler, options.run.seed, trainer.parameters);
        assert_memory_equal(row, stored, sizeof stored);
        lp_trainer_clear(&trainer);
    }
    lapse_dataset_close(dataset);
}

/* Before any step bochner-normal and the maps that begin near the identity reach over the range of periods. */
static void the_start_covers_the_range(void **state)
{
    (void)state;
    const lp_encoding *encoding;
    const lp_inverse_cdf *map;
    lapse_dataset *dataset = small_train_data(4);
    for (int s = 0; sampled(s, &encoding, &map); s++) {
        lapse_train_options options = sampled_options(encoding, map);
        small_set_number(&options, "periods", 50);
        small_set_number(&options, "hidden", 64);
        small_set_number(&options, "period-min", 10);
        small_set_number(&options, "period-max", 100000);
        lp_trainer trainer;
        start(&trainer, dataset, &options);
        const float *row = trainer.parameters + trainer.sampler.sample_offset;
        double low = row[0], high = row[0];
        for (int i = 1; i < 50; i++) {
            low = row[i] < low ? row[i] : low;
            high = row[i] > high ? row[i] : high; /* fmax in such a loop crashes gcc 12.2 for aarch64 */
        }
        double share = (high - low) / log(100000 / 10.0);
        bool free = s > 0 && strcmp(map->name, "mlp") == 0; /* it begins anywhere */
        if (!(share > (free ? 0.02 : 0.7) && share < 2))
            fail_msg("%s: the draw covers %.3g of the range", what, share);
        lp_trainer_clear(&trainer);
    }
    lapse_dataset_close(dataset);
}

/* --------------------------------------------------------------------------------------- what stays fixed ---- */

static const lp_parameter *find(const lp_graph *graph, const char *name)
{
    for (int i = 0; i < graph->parameter_count; i++)
        if (strcmp(graph->parameters[i].value->name, name) == 0)
            return &graph->parameters[i];
    fail_msg("%s: there is no '%s'", what, name);
    return NULL;
}

static void check_fixed(const char *encoding, bool periods_fixed, const char *name, bool fixed)
{
    lapse_dataset *dataset = small_train_data(4);
    lapse_train_options options = small_train_options();
    small_set(&options, "encoding", encoding);
    small_set_number(&options, "periods-fixed", periods_fixed);
    options.run.l2 = 0.5;
    snprintf(what, sizeof what, "%s%s", encoding, periods_fixed ? ", fixed" : "");
    lp_trainer trainer;
    start(&trainer, dataset, &options);
    const lp_value *value = find(&trainer.network.graph, name)->value;
    size_t bytes = (size_t)value->rows * (size_t)value->cols * sizeof(float);
    float before[64];
    assert_true(bytes <= sizeof before);
    memcpy(before, trainer.parameters + value->offset, bytes);
    assert_int_equal(lp_trainer_epoch(&trainer, NULL), LAPSE_OK);
    for (int i = 0; i < 3; i++)
        lp_trainer_step(&trainer);
    if ((memcmp(before, trainer.parameters + value->offset, bytes) == 0) != fixed)
        fail_msg("%s: '%s' %s", what, name, fixed ? "was changed" : "was not learned");
    /* Nor has it a part in the norm that the gradient is clipped by. */
    for (size_t i = 0; fixed && i < bytes / sizeof(float); i++)
        if (trainer.adam.gradients[value->offset + i] != 0 || trainer.adam.moment1[value->offset + i] != 0)
            fail_msg("%s: '%s' has a gradient", what, name);
    lp_trainer_clear(&trainer);
    lapse_dataset_close(dataset);
}

static void fixed_parameters(void **state)
{
    (void)state;
    check_fixed("mercer", false, "time.log_period", false);
    check_fixed("mercer", true, "time.log_period", true);
    check_fixed("mercer", true, "time.amplitude", false);
    check_fixed("bochner", true, "time.log_period", true);
    check_fixed("random", false, "time.log_period", true);
    check_fixed("sinusoid", false, "time.position", true);
    check_fixed("position", false, "time.position", false);
    check_fixed("bochner-normal", false, "time.location", false);
    check_fixed("bochner-normal", false, "time.log_scale", false);
    lapse_dataset *dataset = small_train_data(4);
    lapse_train_options options = small_train_options();
    small_set(&options, "encoding", "bochner-normal"); /* whose draws change, but not by the optimizer */
    lp_trainer trainer;
    start(&trainer, dataset, &options);
    assert_int_equal(lp_trainer_epoch(&trainer, NULL), LAPSE_OK);
    lp_trainer_step(&trainer);
    for (int i = 0; i < small_get_number(&options, "periods"); i++)
        assert_true(trainer.adam.gradients[trainer.sampler.sample_offset + (size_t)i] == 0);
    lp_trainer_clear(&trainer);
    lapse_dataset_close(dataset);
}

/* The draws that a model keeps are those of its best parameters, and not a step further. */
static void kept_draws_are_those_of_the_parameters(void **state)
{
    (void)state;
    const lp_encoding *encoding;
    const lp_inverse_cdf *map;
    lapse_dataset *dataset = small_train_data(4);
    for (int s = 0; sampled(s, &encoding, &map); s++) {
        lapse_train_options options = sampled_options(encoding, map);
        small_set_number(&options, "frequency-samples", 2);
        options.run.epochs = 4;
        lapse_model *model = small_train(dataset, &options, NULL, NULL);
        lp_sampler sampler;
        assert_int_equal(lp_sampler_init(&sampler, &model->network, lp_backend_find("cpu"), NULL), LAPSE_OK);
        float kept[10], *row = model->parameters + sampler.sample_offset;
        memcpy(kept, row, sizeof kept);
        memset(row, 0, sizeof kept);
        lp_sampler_store(&sampler, options.run.seed, model->parameters);
        if (memcmp(kept, row, sizeof kept) != 0)
            fail_msg("%s: the model keeps other draws than its parameters give", what);
        lp_sampler_clear(&sampler);
        lapse_model_free(model);
    }
    lapse_dataset_close(dataset);
}

/* -------------------------------------------------------------------------------------- averaged answers ----- */

static void ask(const lapse_model *model, double *answer)
{
    lapse_session *session = NULL;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    for (int i = 0; i < 6; i++) {
        const char name[] = {(char)('a' + i % 5), 0};
        assert_int_equal(lapse_session_append(session, 1.7e9 + i * i, name, NULL), LAPSE_OK);
    }
    assert_int_equal(lapse_session_predict(session, 1.7e9 + 40, answer, NULL), LAPSE_OK);
    lapse_session_free(session);
}

static void answers_are_averaged(void **state)
{
    (void)state;
    lp_model_config config = small_config(lp_encoding_find("bochner-normal"), 8, 2, 2), one = config;
    small_config_number(&config, "frequency-samples", 3);
    lapse_model *all = small_model(&config, 5);
    const lp_tensor *draws_of_all = lp_model_tensor_find(all, "time.log_period");
    assert_int_equal(draws_of_all->rows, 3);
    double wanted[5] = {0}, answer[5], sum = 0;
    for (int draw = 0; draw < 3; draw++) {
        lapse_model *single = small_model(&one, 5); /* parameters do not change after the first query */
        for (int i = 0; i < single->tensor_count; i++) {
            const lp_tensor *from = lp_model_tensor_find(all, single->tensors[i].name);
            size_t bytes = lp_tensor_bytes(&single->tensors[i]);
            const char *data = from->data;
            memcpy(single->tensors[i].data, from->rows == 3 && from == draws_of_all ? data + draw * bytes : data,
                   bytes);
        }
        ask(single, answer);
        lapse_model_free(single);
        for (int c = 0; c < 5; c++)
            wanted[c] += answer[c] / 3;
        if (draw > 0)
            assert_true(fabs(answer[0] - wanted[0] * 3 / (draw + 1)) > 1e-7); /* the draws do differ */
    }
    ask(all, answer);
    for (int c = 0; c < 5; c++) {
        sum += answer[c];
        assert_true(fabs(answer[c] - wanted[c]) < 1e-7);
    }
    assert_true(fabs(sum - 1) < 1e-12);
    lapse_model_free(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients),
        cmocka_unit_test(the_whole_loss_is_learned_from),
        cmocka_unit_test(draws),
        cmocka_unit_test(the_start_covers_the_range),
        cmocka_unit_test(fixed_parameters),
        cmocka_unit_test(kept_draws_are_those_of_the_parameters),
        cmocka_unit_test(answers_are_averaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
