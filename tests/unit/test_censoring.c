/* test_censoring.c: right censoring: a renewal process that is observed up to a fixed time is learned without bias, the laws of the
 * normal tail, every model and loss with targets that have no label, and what is refused. */
#include "formula/mixture.h"
#include "model/model_options.h"
#include "model/when_head.h"
#include "serve/session.h"
#include "support/small_data.h"
#include "support/small_train.h"
#include "train/trainer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_near(const char *what, double got, double wanted, double bound)
{
    if (!(fabs(got - wanted) <= bound))
        fail_msg("%s: %.12g, should be %.12g within %.3g", what, got, wanted, bound);
}

/* -------------------------------------------------------------------------------------------------- the tail ---- */

/* log Q(z) by the continued fraction of Mills' ratio, for z > 0. */
static long double log_tail(long double z)
{
    long double ratio = z;
    for (int k = 400; k > 0; k--)
        ratio = z + k / ratio;
    return -z * z / 2 - logl(ratio) - 0.91893853320467274178L;
}

/* log Q and the hazard far out in both tails; the hazard is the derivative of -log Q. */
static void tail_is_exact(void **state)
{
    (void)state;
    static const double points[] = {1.5, 3, 8, 20, 29.999, 30.001, 37, 38, 40, 100, 1e4, 1e8};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        double z = points[i];
        long double wanted = log_tail((long double)z),
                    hazard = expl(-(long double)z * z / 2 - 0.91893853320467274178L - wanted);
        check_near("log tail", lp_normal_log_tail(z), (double)wanted, 1e-12 * fabs((double)wanted));
        if (z < 1e4)
            check_near("hazard", lp_normal_hazard(z), (double)hazard, 1e-11 * z);
        check_near("other side", lp_normal_log_tail(-z), (double)log1pl(-expl(wanted)), 1e-15);
        assert_true(lp_normal_hazard(-z) >= 0 && lp_normal_hazard(-z) < 0.2 && lp_normal_hazard(z) > z);
    }
    for (double z = -6; z < 45; z += 0.37) {
        double step = 1e-5, slope = (lp_normal_log_tail(z - step) - lp_normal_log_tail(z + step)) / (2 * step);
        check_near("hazard as a derivative", lp_normal_hazard(z), slope, 1e-6 * (1 + fabs(slope)));
    }
}

/* -------------------------------------------------------------------------------------- a known renewal process -- */

enum { SEQUENCES = 2000, MOST = 100 };

static const double BEGIN = 1e9;

typedef struct renewal {
    const char *name, *model;
    double span;       /* seconds from BEGIN to the end of the observation */
    int epochs, batch; /* rmtpp selects epochs by the types, which are random here: so it has one */
    double (*draw)(lp_random *random);
    double (*log_density)(double t);
    double (*survival)(double t);
} renewal;

static double draw_log_normal(lp_random *random)
{
    return exp(8 + 1.2 * lp_random_normal(random));
}

static double log_normal_density(double t)
{
    double z = (log(t) - 8) / 1.2;
    return -z * z / 2 - log(t * 1.2 * sqrt(2 * M_PI));
}

static double log_normal_survival(double t)
{
    return 0.5 * erfc((log(t) - 8) / 1.2 / sqrt(2));
}

static double draw_exponential(lp_random *random)
{
    return 6000 * lp_random_exponential(random);
}

static double exponential_density(double t)
{
    return -t / 6000 - log(6000);
}

static double exponential_survival(double t)
{
    return exp(-t / 6000);
}

static const renewal renewals[] = {
    {"log-normal gaps, a mixture", "attention", 50000, 8, 50, draw_log_normal, log_normal_density, log_normal_survival},
    {"exponential gaps, rmtpp", "rmtpp", 24000, 1, 4, draw_exponential, exponential_density, exponential_survival},
};

/* Every sequence begins at a random time and is observed up to the same one: some gaps that have ended, and an open one. The last event
 * of one more sequence is at the end, so that the observation ends there. outlast: gaps that are known to outlast the silence. */
static lapse_dataset *observe(const renewal *r, uint64_t seed, int64_t *outlast, double silence)
{
    static double time[(SEQUENCES + 1) * MOST];
    static int32_t type[(SEQUENCES + 1) * MOST];
    static int lengths[SEQUENCES + 1];
    lp_random random = lp_random_start(seed, LP_PURPOSE_TEST, 1);
    int events = 0;
    double end = BEGIN + r->span;
    *outlast = 0;
    for (int s = 0; s < SEQUENCES; s++) {
        double t = BEGIN + 4000 * lp_random_uniform(&random);
        for (lengths[s] = 0; t < end && lengths[s] < MOST; lengths[s]++) {
            time[events] = t;
            type[events++] = (int32_t)lp_random_below(&random, 2);
            double gap = r->draw(&random);
            *outlast += gap > silence && t + silence < end;
            t += gap;
        }
    }
    lengths[SEQUENCES] = 1;
    time[events] = end;
    type[events] = 0;
    return small_dataset(SEQUENCES + 1, lengths, time, type, 2, NULL);
}

/* The NLL of gaps of the law that nothing cuts off, above that of the law itself; and the chance after a silence. */
static void learn(const renewal *r, bool censoring, double *above, double *chance, int64_t *outlast, double silence)
{
    lapse_dataset *dataset = observe(r, 2, outlast, silence);
    lapse_train_options options = small_gap_options(MOST, r->batch, r->epochs);
    small_set(&options, "model", r->model);
    if (strcmp(r->model, "rmtpp") != 0)
        small_set(&options, "when", "true");
    small_set(&options, "censoring", censoring ? "on" : "off");
    small_set(&options, "split-by", "sequence");
    lapse_model *model = small_train(dataset, &options, NULL, NULL);
    lapse_session *session;
    lp_next_time law;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_int_equal(lp_session_hold(session, NULL), LAPSE_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(lp_session_add(session, BEGIN + 3000 * i, i % 2, NULL, NULL), LAPSE_OK);
    assert_int_equal(lp_session_law(session, &law, NULL), LAPSE_OK);
    lp_random random = lp_random_start(2, LP_PURPOSE_TEST, 1);
    enum { DRAWS = 20000 };
    *above = 0;
    for (int i = 0; i < DRAWS; i++) {
        double gap = r->draw(&random);
        *above += (r->log_density(gap) - lp_next_time_log_density(&law, gap)) / DRAWS;
    }
    law = lp_next_time_after(law, silence);
    *chance = lp_next_time_cdf(&law, silence);
    lapse_session_free(session);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

/* With censoring the law is learned within the bounds of uncensored data (test_when.c); without it the long gaps are missing. */
static void open_gaps_are_learned(void **state)
{
    (void)state;
    small_skip_under_tools(); /* it is about numbers, and reads memory like the others */
    const double silence = 6000;
    for (size_t r = 0; r < sizeof renewals / sizeof *renewals; r++) {
        double above[2], chance[2];
        int64_t outlast;
        for (int c = 0; c < 2; c++)
            learn(&renewals[r], c, &above[c], &chance[c], &outlast, silence);
        double exact = 1 - renewals[r].survival(2 * silence) / renewals[r].survival(silence);
        double sample = sqrt(exact * (1 - exact) / (0.8 * (double)outlast));
        print_message("%s: NLL above that of the law %.4f, without censoring %.4f; after a silence %.4f, without %.4f, "
                      "exactly %.4f, standard error of the sample %.4f\n",
                      renewals[r].name, above[1], above[0], chance[1], chance[0], exact, sample);
        check_near(renewals[r].name, above[1], 0, 0.01);
        check_near("after a silence", chance[1], exact, fmax(0.01, 3 * sample));
        if (!(above[0] > 0.02 && chance[0] > exact + 0.05)) /* the test can fail */
            fail_msg("%s: without censoring the law is no worse", renewals[r].name);
    }
}

/* --------------------------------------------------------------------------------- targets that have no label ---- */

typedef struct variant {
    const char *name;
    const char *options[12]; /* names and values */
} variant;

static const variant variants[] = {
    {"attention", {"when", "true"}},
    {"unknown target time", {"when", "true", "target-time", "unknown"}},
    {"rmtpp", {"model", "rmtpp"}},
    {"rmtpp with lags", {"model", "rmtpp", "encoding", "mercer", "periods", "3"}},
    {"lstm", {"when", "true", "model", "lstm", "encoding", "mercer", "periods", "3"}},
    {"last windows", {"when", "true", "windows", "last"}},
    {"each window", {"when", "true", "windows", "each"}},
    {"softmax", {"when", "true", "task", "recommend", "loss", "softmax"}},
    {"bce", {"when", "true", "task", "recommend", "loss", "bce", "negatives-unseen", "true"}},
    {"sampled softmax", {"when", "true", "task", "recommend", "loss", "sampled-softmax"}},
    {"bpr-max", {"when", "true", "task", "recommend", "loss", "bpr-max", "model", "gru4rec"}},
    {"caser", {"when", "true", "task", "recommend", "model", "caser", "conv-targets", "2"}},
};

enum { VARIANTS = sizeof variants / sizeof *variants };

static lapse_train_options options_of(const variant *v, bool censoring)
{
    lapse_train_options options = small_train_options();
    small_set(&options, "split-by", "sequence");
    small_set(&options, "censoring", censoring ? "on" : "off");
    for (int i = 0; v->options[i]; i += 2)
        small_set(&options, v->options[i], v->options[i + 1]);
    return options;
}

/* Every model and loss learns with open gaps, also from sequences of one event. Whether a batch has labels at all, nothing is
 * infinite. */
static void every_loss_takes_open_gaps(void **state)
{
    (void)state;
    double time[60];
    int32_t type[60];
    int lengths[45], events = 0;
    for (int s = 0; s < 45; s++) { /* most have one event; the last batches of an epoch may have no label */
        lengths[s] = s % 9 == 0 ? 4 : 1;
        for (int k = 0; k < lengths[s]; k++, events++) {
            time[events] = 1000.0 * s + 100 * k * k;
            type[events] = (s + k) % 5;
        }
    }
    lapse_dataset *single = small_dataset(45, lengths, time, type, 5, NULL), *dataset = small_train_data(3);
    for (int v = 0; v < VARIANTS; v++)
        for (int k = 0; k < 2; k++) {
            lapse_train_options options = options_of(&variants[v], true);
            options.run.batch = k ? 2 : 7;
            options.run.epochs = 1;
            lapse_model *model = small_train(k ? single : dataset, &options, NULL, NULL);
            for (int i = 0; i < model->tensor_count; i++)
                if (!isfinite(lp_tensor_largest(&model->tensors[i])))
                    fail_msg("%s, data %d: %s is not finite", variants[v].name, k, model->tensors[i].name);
            lapse_model_free(model);
        }
    lapse_dataset_close(single);
    lapse_dataset_close(dataset);
}

/* All sequences end at the end of the data: no gap is open, and censoring changes no bit. One that ends earlier changes the result. */
static void open_gap_of_zero_is_none(void **state)
{
    (void)state;
    enum { COUNT = 20, LENGTH = 5 };
    double time[COUNT * LENGTH];
    int32_t type[COUNT * LENGTH];
    int lengths[COUNT];
    for (int early = 0; early < 2; early++) {
        for (int i = 0; i < COUNT * LENGTH; i++) {
            int s = i / LENGTH, k = i % LENGTH;
            lengths[s] = LENGTH;
            time[i] = 1e6 - (double)(LENGTH - 1 - k) * (50 + s) - (early && s % 2 ? 500 : 0);
            type[i] = (s + k) % 3;
        }
        lapse_dataset *dataset = small_dataset(COUNT, lengths, time, type, 3, NULL);
        for (int v = 0; v < 5; v++) {
            lapse_train_options plain = options_of(&variants[v], false), censored = options_of(&variants[v], true);
            lapse_model *a = small_train(dataset, &plain, NULL, NULL), *b = small_train(dataset, &censored, NULL, NULL);
            const lapse_model *one = lp_model_of_times(a), *other = lp_model_of_times(b);
            size_t size = one->network.graph.parameter_size;
            assert_int_equal(size, other->network.graph.parameter_size);
            if ((memcmp(one->parameters, other->parameters, size * sizeof(float)) == 0) != !early)
                fail_msg("%s: %s open gaps, and the parameters are %s", variants[v].name, early ? "with" : "without",
                         early ? "the same" : "others");
            lapse_model_free(a);
            lapse_model_free(b);
        }
        lapse_dataset_close(dataset);
    }
}

/* The held-out event after the last training event does not reach the training: another time of it changes no bit. */
static void held_out_events_do_not_leak(void **state)
{
    (void)state;
    enum { COUNT = 12, LENGTH = 6 };
    double time[COUNT * LENGTH];
    int32_t type[COUNT * LENGTH];
    uint8_t split[COUNT * LENGTH];
    int lengths[COUNT];
    float *parameters[2];
    size_t size = 0;
    for (int m = 0; m < 2; m++) {
        for (int i = 0; i < COUNT * LENGTH; i++) {
            int s = i / LENGTH, k = i % LENGTH;
            lengths[s] = LENGTH;
            time[i] = k < 4 ? 1000.0 * k + 13 * s : 5000 + 1000.0 * k + 77.0 * s * (k > 4 || s > 0 ? m : 0);
            type[i] = k < 4 ? (s + k) % 3 : (s + k + m) % 3;
            split[i] = k < 4 ? LP_SPLIT_TRAIN : LP_SPLIT_VALID;
        }
        lapse_dataset *dataset = small_dataset(COUNT, lengths, time, type, 3, split);
        lapse_train_options options = small_train_options();
        lp_trainer trainer;
        small_set(&options, "when", "true");
        small_set(&options, "censoring", "on");
        small_set(&options, "split-by", "column");
        small_set(&options, "period-min", "1"); /* the periods of the encoding are those of all data otherwise */
        small_set(&options, "period-max", "1e5");
        options.model.context = 8;
        assert_int_equal(lp_trainer_init(&trainer, dataset, &options, NULL), LAPSE_OK);
        assert_int_equal(lp_trainer_times(&trainer, NULL), LAPSE_OK);
        check_near("end of the observation", trainer.targets.end, 9000, 0);
        assert_int_equal(lp_trainer_epoch(&trainer, NULL), LAPSE_OK);
        assert_int_equal(trainer.windows.targets, COUNT * 4);
        while (!lp_trainer_epoch_done(&trainer))
            lp_trainer_step(&trainer);
        size = trainer.adam.size;
        parameters[m] = calloc(size, sizeof(float));
        memcpy(parameters[m], trainer.parameters, size * sizeof(float));
        lp_trainer_clear(&trainer);
        lapse_dataset_close(dataset);
    }
    assert_memory_equal(parameters[0], parameters[1], size * sizeof(float));
    free(parameters[0]);
    free(parameters[1]);
}

/* --------------------------------------------------------------------------------------------- refusals ---------- */

static void refuses_what_has_no_end(void **state)
{
    (void)state;
    static const struct {
        const char *options[8], *text;
    } cases[] = {
        {{"when", "false"}, "--censoring needs a model of the time"},
        {{"model", "timejoint"}, "--censoring needs a model of the time"},
        {{"model", "markov"}, "--censoring needs a model of the time"},
        {{"when", "true", "split-by", "leave-one-out"}, "use --split-by sequence, time or session"},
    };
    lapse_dataset *dataset = small_train_data(9);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_train_options options = small_train_options();
        lapse_error error = {0};
        lapse_trainer *trainer;
        small_set(&options, "censoring", "on");
        for (int k = 0; cases[i].options[k]; k += 2)
            small_set(&options, cases[i].options[k], cases[i].options[k + 1]);
        lapse_status status = lapse_trainer_new(dataset, &options, &trainer, &error);
        if (status != LAPSE_ERROR_USAGE || !strstr(error.message, cases[i].text))
            fail_msg("status %d, '%s'; should be '%s'", (int)status, error.message, cases[i].text);
    }
    lapse_dataset_close(dataset);
    lapse_train_options options =
        small_train_options(); /* the data has no actions, so the model's part of the check alone */
    lapse_error error = {0};
    small_set(&options, "when", "true");
    small_set(&options, "censoring", "on");
    small_set(&options, "target", "action=buy");
    options.model.row = lp_model_row_find("attention");
    assert_int_equal(lp_model_config_validate(&options.model, &error), LAPSE_ERROR_USAGE);
    assert_non_null(strstr(error.message, "--censoring cannot be combined with --target action=buy"));
}

/* ------------------------------------------------------------------------------------------------ the rule ------- */

/* The data decides, and says why; what is given stays. */
static void the_rule_says_why(void **state)
{
    (void)state;
    static const struct {
        const char *options[8], *chosen, *reason;
    } cases[] = {
        {{"when", "true", "split-by", "sequence"}, "on", " sequences are silent at the end of the observation, "},
        {{"when", "true", "split-by", "leave-one-out"}, "off", "use --split-by sequence, time or session"},
        {{"when", "true", "split-by", "sequence", "censoring", "off"}, "off", ""},
        {{"when", "true", "split-by", "sequence", "censoring", "on"}, "on", ""},
        {{"model", "rmtpp", "split-by", "time"}, "on", "of the gaps that have ended"},
        {{"when", "false"}, "off", ""},
    };
    lapse_dataset *dataset = small_train_data(9);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        lapse_train_options options = small_train_options();
        lapse_trainer *trainer;
        lapse_error error = {0};
        char text[16];
        for (int k = 0; cases[i].options[k]; k += 2)
            small_set(&options, cases[i].options[k], cases[i].options[k + 1]);
        if (lapse_trainer_new(dataset, &options, &trainer, &error) != LAPSE_OK)
            fail_msg("case %zu: %s", i, error.message);
        const lapse_train_options *resolved = lapse_trainer_options(trainer);
        const char *reason = lapse_train_options_reason(resolved, "censoring");
        lapse_train_options_get(resolved, "censoring", text, sizeof text);
        if (strcmp(text, cases[i].chosen) != 0 || !strstr(reason, cases[i].reason) || !*reason != !*cases[i].reason)
            fail_msg("case %zu: %s, '%s'; should be %s, '%s'", i, text, reason, cases[i].chosen, cases[i].reason);
        lapse_trainer_free(trainer);
    }
    assert_string_equal(lapse_train_options_reason(&(lapse_train_options){0}, "seed"), "");
    lapse_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tail_is_exact),
        cmocka_unit_test(open_gaps_are_learned),
        cmocka_unit_test(every_loss_takes_open_gaps),
        cmocka_unit_test(open_gap_of_zero_is_none),
        cmocka_unit_test(held_out_events_do_not_leak),
        cmocka_unit_test(refuses_what_has_no_end),
        cmocka_unit_test(the_rule_says_why),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
