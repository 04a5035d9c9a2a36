/* test_models.c: every row of the model table, for every task it can be trained for: gradients, threads, resume, files, evaluation
 * against sessions, many queries, fields. A new model is tested here without a new test. */
#include "data/dataset/fingerprint.h"
#include "model/input_layer.h"
#include "model/model_options.h"
#include "model/output_layer.h"
#include "model/id_map.h"
#include "serve/session.h"
#include "support/graph_slope.h"
#include "support/small_data.h"
#include "support/small_model.h"
#include "support/small_train.h"
#include "support/table_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The model under test, for messages. */
static char what[80];

/* Longer than any sequence of small_train_data, so that evaluation and sessions see the same events. */
enum { CONTEXT = 20 };

/* The losses over negatives of each target differ in one function: one model is tested with all of them, the others with bce and with
 * their own. */
static bool tests_loss(int model, int loss)
{
    bool points = lp_models[model]->points; /* whose scores are distances, for losses over negatives of each target */
    return points ? loss == LP_LOSS_BCE || loss == LP_LOSS_BPR : model == 0 || loss <= LP_LOSS_BCE;
}

/* Begins the history of a sequence of the training data, whose user the model may know. */
static void begin_sequence(lapse_session *session, int64_t sequence)
{
    lapse_session_clear(session);
    if (session->model->config.row->sequence_input)
        session->sequence = (int32_t)sequence + 1;
}

/* Calls check for each model and task, losses of a recommender, networks with and without the gap input, and those that
 * have encodings with another one than their default, with options for a small run. */
static void for_each_model(void (*check)(const lapse_dataset *dataset, lapse_train_options *options))
{
    enum { PLAIN, GAPS, OTHER_ENCODING, VARIANTS };
    static const char *const names[VARIANTS] = {[PLAIN] = "", [GAPS] = ", gaps", [OTHER_ENCODING] = ", bochner-normal"};
    lapse_dataset *dataset = small_train_data(3);
    for (int m = 0; lp_models[m]; m++)
        for (int task = 0; lp_task_names[task]; task++)
            for (int loss = 0; lp_loss_names[loss]; loss++)
                for (int variant = 0; variant < VARIANTS; variant++) {
                    bool network = lp_models[m]->build, ranks = task == LP_TASK_RECOMMEND && network;
                    if (!(lp_models[m]->tasks >> task & 1) || (loss > 0 && !ranks) || (variant && !network) ||
                        (variant == OTHER_ENCODING && !lp_model_has_option(lp_models[m], "encoding")) ||
                        (ranks && !tests_loss(m, loss)))
                        continue;
                    lapse_train_options options = small_train_options();
                    small_set(&options, "model", lp_models[m]->name);
                    small_set(&options, "task", lp_task_names[task]);
                    if (ranks)
                        small_set(&options, "loss", lp_loss_names[loss]);
                    options.model.context = CONTEXT;
                    options.model.gap_input = variant == GAPS;
                    if (variant == OTHER_ENCODING)
                        small_set(&options, "encoding", "bochner-normal");
                    snprintf(what, sizeof what, "%s, %s, %s%s", lp_models[m]->name, lp_task_names[task],
                             lp_loss_names[loss], names[variant]);
                    check(dataset, &options);
                }
    lapse_dataset_close(dataset);
}

/* ----------------------------------------------------------------------------------------------- layers ------- */

/* The log-softmax after three events, of which the first two are as given. */
static void after_two(const lapse_model *model, int32_t first, int32_t second, double out[5])
{
    enum { TOKENS = 3 };
    const int32_t type[TOKENS] = {first, second, 2};
    const double time[TOKENS] = {0, 5, 10}, query[TOKENS] = {5, 10, 15}, gap[TOKENS] = {NAN, 5, 5};
    double all[TOKENS * 5];
    small_answers(model, "reference", TOKENS, type, time, query, gap, all);
    memcpy(out, all + (TOKENS - 1) * (size_t)5, 5 * sizeof *out);
}

/* The recurrent layers of a model, by their parameters. */
static int recurrent_layers(const lapse_model *model)
{
    int count = 0;
    for (int i = 0; i < model->network.graph.parameter_count; i++)
        count += strstr(model->network.graph.parameters[i].value->name, ".weight_hh") != NULL;
    return count;
}

/* A recurrent network has every layer that was asked for, and what it predicts depends on the order of earlier events. */
static void recurrent_layers_are_there(void **state)
{
    (void)state;
    int found = 0;
    for (int m = 0; lp_models[m]; m++) {
        bool chosen = lp_model_has_option(lp_models[m], "layers");
        if (!chosen && strcmp(lp_models[m]->name, "rmtpp") != 0)
            continue;
        found++;
        for (int layers = 1; layers <= (chosen ? 3 : 1); layers++) {
            lp_model_config config = small_config_of(lp_models[m], 4);
            if (chosen)
                small_config_number(&config, "layers", layers);
            lapse_model *model = small_model(&config, 7);
            double one[5], other[5];
            if (recurrent_layers(model) != layers)
                fail_msg("%s: %d recurrent layers of %d", lp_models[m]->name, recurrent_layers(model), layers);
            after_two(model, 0, 1, one);
            after_two(model, 1, 0, other);
            assert_true(fabs(one[0] - other[0]) > 1e-6);
            lapse_model_free(model);
        }
    }
    assert_true(found >= 3);
}

/* ----------------------------------------------------------------------------------------------- the rows ----- */

static void rows_are_complete(void **state)
{
    (void)state;
    for (int m = 0; lp_models[m]; m++) {
        const lp_model_row *row = lp_models[m];
        assert_ptr_equal(lp_model_row_find(row->name), row);
        assert_true(strlen(row->summary) > 10 && row->tasks > 0 && row->tasks <= LP_TASKS_ALL);
        assert_true(row->build ? !row->fit && !row->predict : row->fit && row->check && row->predict);
        for (const lp_option *const *table = row->options; *table; table++)
            for (const lp_option *option = *table; option->name; option++) {
                assert_null(lp_options_find(lp_model_options, option->name));
                assert_ptr_equal(lp_options_find(*table, option->name), option);
                assert_true(option->offset < LP_MODEL_SETTINGS_SIZE);
                assert_true(lapse_model_has_option(row->name, option->name));
            }
    }
}

/* ---------------------------------------------------------------------------------------------- gradients ----- */

static void check_gradients(const lapse_dataset *dataset, lapse_train_options *options)
{
    if (!lp_models[options->run.model]->build || options->model.loss > LP_LOSS_SOFTMAX)
        return; /* test_recommend.c has the sampled losses */
    lapse_error error = {0};
    if (small_resolve(options, dataset, &error) != LAPSE_OK)
        fail_msg("%s: %s", what, error.message);
    for (int seed = 0; seed < 4; seed++) {
        graph_case this = {.gap = 1};
        lp_network network;
        lp_random random = lp_random_start((uint64_t)seed, LP_PURPOSE_TEST, 450);
        options->model.dropout = seed % 2 ? 0.3 : 0;
        assert_int_equal(lp_network_build(&network, &options->model, true, NULL), LAPSE_OK);
        assert_true(network.graph.value_count <= CASE_VALUES);
        this.graph = network.graph;
        this.output_count = 1;
        this.outputs[0] = network.loss;
        for (int i = 0; i < this.graph.value_count; i++)
            if (strcmp(this.graph.values[i]->name, "seed") == 0)
                this.seeds[0] = this.graph.values[i];
        graph_case_segments(&this, seed / 2 ? (int[]){1, 4, 2} : (int[]){6}, seed / 2 ? 3 : 1);
        graph_case_fill(&this, &random);
        /* The states of a plain recurrent layer have no bound, and with them the logarithm of an intensity. */
        for (size_t i = 0; lp_model_has_option(options->model.row, "cell") && i < this.graph.parameter_size; i++)
            this.parameters[i] *= 0.2;
        graph_slope_check(&this, what, small_effort(1, 17));
        graph_case_clear(&this);
    }
}

static void gradients(void **state)
{
    (void)state;
    for_each_model(check_gradients);
}

/* ------------------------------------------------------------------------------------------ runs and files ----- */

static void save_and_free(lapse_model *model, const char *name)
{
    assert_int_equal(lapse_model_save(model, small_path(name), NULL), LAPSE_OK);
    lapse_model_free(model);
}

/* Stops at the third report. */
static bool stop_at_third(const lapse_progress *progress, void *context)
{
    (void)progress;
    return ++*(int *)context < 3;
}

/* Stops at every third report and resumes, until the run is complete. */
static void train_in_parts(const lapse_dataset *dataset, lapse_train_options options, const char *name)
{
    int calls = 3;
    small_set(&options, "checkpoint", small_path("checkpoint"));
    unlink(options.run.checkpoint);
    options.run.resume = true;
    for (int part = 0; calls == 3; part++) {
        calls = 0;
        options.run.threads = 1 + part % 2;
        save_and_free(small_train(dataset, &options, stop_at_third, &calls), name);
        assert_true(part < 100);
    }
}

static void check_files(const lapse_dataset *dataset, lapse_train_options *options)
{
    lapse_model *loaded = NULL;
    save_and_free(small_train(dataset, options, NULL, NULL), "one");
    options->run.threads = 3;
    save_and_free(small_train(dataset, options, NULL, NULL), "threads");
    small_files_same(small_path("one"), small_path("threads"));
    assert_int_equal(lapse_model_load(small_path("one"), &loaded, NULL), LAPSE_OK);
    save_and_free(loaded, "loaded");
    small_files_same(small_path("one"), small_path("loaded"));
    if (!lp_models[options->run.model]->build)
        return;
    train_in_parts(dataset, *options, "parts");
    small_files_same(small_path("one"), small_path("parts"));
}

static void threads_resume_and_files(void **state)
{
    (void)state;
    for_each_model(check_files);
}

/* ---------------------------------------------------------------------------------------------- predictions ---- */

static lapse_model *train_and_load(const lapse_dataset *dataset, const lapse_train_options *options)
{
    lapse_model *model = NULL;
    save_and_free(small_train(dataset, options, NULL, NULL), "model");
    assert_int_equal(lapse_model_load(small_path("model"), &model, NULL), LAPSE_OK);
    return model;
}

/* Log-loss and mean reciprocal rank of every event but the first of each sequence, by a session that grows with it. */
static void score_by_sessions(const lapse_model *model, const lapse_dataset *dataset, double *loss, double *mrr)
{
    enum { TYPES = 5 };
    double probabilities[TYPES], fresh[TYPES];
    int64_t cases = 0;
    lapse_session *session = NULL, *other = NULL;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_new(model, &other, NULL), LAPSE_OK);
    *loss = *mrr = 0;
    for (int64_t s = 0; s < dataset->sequence_count; s++) {
        begin_sequence(session, s);
        for (uint64_t i = dataset->start[s]; i < dataset->start[s + 1]; i++) {
            if (i > dataset->start[s]) {
                int target = dataset->type[i], rank = 1;
                assert_int_equal(lapse_session_predict(session, dataset->time[i], probabilities, NULL), LAPSE_OK);
                begin_sequence(other, s); /* the same history at once instead of event by event */
                for (uint64_t k = dataset->start[s]; k < i; k++)
                    assert_int_equal(lapse_session_append(other, dataset->time[k],
                                                          lapse_dataset_event_type_name(dataset, dataset->type[k]),
                                                          NULL),
                                     LAPSE_OK);
                assert_int_equal(lapse_session_predict(other, dataset->time[i], fresh, NULL), LAPSE_OK);
                for (int c = 0; c < TYPES; c++) {
                    if (!(fabs(probabilities[c] - fresh[c]) < 1e-5))
                        fail_msg("%s: %.9g step by step, %.9g at once", what, probabilities[c], fresh[c]);
                    rank += c != target && probabilities[c] >= probabilities[target];
                }
                *loss -= log(probabilities[target]);
                *mrr += 1.0 / rank;
                cases++;
            }
            assert_int_equal(lapse_session_append(session, dataset->time[i],
                                                  lapse_dataset_event_type_name(dataset, dataset->type[i]), NULL),
                             LAPSE_OK);
        }
    }
    *loss /= (double)cases;
    *mrr /= (double)cases;
    lapse_session_free(session);
    lapse_session_free(other);
}

static void check_evaluation(const lapse_dataset *dataset, lapse_train_options *options)
{
    lapse_model *model = train_and_load(dataset, options);
    double loss, mrr;
    score_by_sessions(model, dataset, &loss, &mrr);
    if (!lp_model_ranks(&model->config)) {
        lapse_evaluate_options evaluate;
        lapse_scores scores;
        lapse_evaluate_options_default(&evaluate);
        evaluate.split = "all";
        evaluate.bootstrap = 0;
        assert_int_equal(lapse_evaluate(model, dataset, &evaluate, &scores, NULL), LAPSE_OK);
        if (!(fabs(scores.log_loss - loss) < 1e-5))
            fail_msg("%s: log-loss %.9g, sessions have %.9g", what, scores.log_loss, loss);
        lapse_scores_clear(&scores);
    } else {
        lapse_rank_options rank;
        lapse_rank_scores scores;
        lapse_rank_options_default(&rank);
        rank.split = "all";
        rank.bootstrap = rank.negatives = 0;
        assert_int_equal(lapse_rank_evaluate(model, dataset, &rank, &scores, NULL), LAPSE_OK);
        if (!(fabs(scores.whole.scores[1].mrr.mean - mrr) < 1e-9))
            fail_msg("%s: MRR %.9g, sessions have %.9g", what, scores.whole.scores[1].mrr.mean, mrr);
        lapse_rank_scores_clear(&scores);
    }
    lapse_model_free(model);
}

static void evaluation_is_that_of_sessions(void **state)
{
    (void)state;
    for_each_model(check_evaluation);
}

static void check_queries(const lapse_dataset *dataset, lapse_train_options *options)
{
    enum { TOP = 3, QUERIES = 10 };
    lapse_model *model = train_and_load(dataset, options);
    lapse_session *session = NULL;
    lapse_query queries[QUERIES];
    lapse_recommendation best[QUERIES * TOP], one[TOP];
    int64_t counts[QUERIES], count;
    lapse_predict_options predict;
    lapse_predict_options_default(&predict);
    predict.top = TOP;
    for (int q = 0; q < QUERIES; q++)
        queries[q] = (lapse_query){q, dataset->time[dataset->start[q + 1] - 1] + 7 * q};
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_int_equal(lapse_predict_all(model, dataset, queries, QUERIES, &predict, best, counts, NULL), LAPSE_OK);
    for (int q = 0; q < QUERIES; q++) {
        begin_sequence(session, q);
        for (uint64_t i = dataset->start[q]; i < dataset->start[q + 1]; i++)
            assert_int_equal(lapse_session_append(session, dataset->time[i],
                                                  lapse_dataset_event_type_name(dataset, dataset->type[i]), NULL),
                             LAPSE_OK);
        assert_int_equal(lapse_session_recommend(session, queries[q].time, TOP, false, one, &count, NULL), LAPSE_OK);
        assert_int_equal(counts[q], count);
        for (int k = 0; k < TOP; k++)
            if (best[q * TOP + k].item != one[k].item || !(fabs(best[q * TOP + k].score - one[k].score) < 1e-5))
                fail_msg("%s: query %d, rank %d differs", what, q, k + 1);
    }
    lapse_session_free(session);
    lapse_model_free(model);
}

static void many_queries_are_those_of_sessions(void **state)
{
    (void)state;
    for_each_model(check_queries);
}

/* ---------------------------------------------------------------------------------------------------- fields --- */

/* Every network reads actions, categories and numbers; those that classify predict the action. */
static void fields_and_actions(void **state)
{
    (void)state;
    static const char *const devices[] = {"device"}, *const prices[] = {"price"};
    lp_buffer text = {0};
    lp_random random = lp_random_start(9, LP_PURPOSE_TEST, 451);
    lp_buffer_print(&text, "user,time,item,action,device,price\n");
    for (int i = 0; i < 400; i++)
        lp_buffer_print(&text, "u%d,%d,%c,%s,%s,%.2f\n", i / 10, 1000 + 60 * i, "xyz"[lp_random_below(&random, 3)],
                        lp_random_below(&random, 2) ? "view" : "buy", lp_random_below(&random, 2) ? "phone" : "web",
                        lp_random_uniform(&random));
    lapse_import_options import = defaults();
    lapse_dataset *dataset = NULL;
    lapse_error error = {0};
    import.event = "item";
    import.action = "action";
    import.categories = devices;
    import.numbers = prices;
    import.category_count = import.number_count = 1;
    if (import_bytes(text.data, text.size, &import, 1000, &dataset, NULL, &error) != LAPSE_OK)
        fail_msg("%s", error.message);
    for (int m = 0; lp_models[m]; m++) {
        if (!lp_models[m]->build)
            continue;
        lapse_train_options options = small_train_options();
        snprintf(what, sizeof what, "%s with fields", lp_models[m]->name);
        small_set(&options, "model", lp_models[m]->name);
        bool classifies = lp_models[m]->tasks & 1 << LP_TASK_CLASSIFY;
        small_set(&options, classifies ? "predict" : "task", classifies ? "both" : "recommend");
        check_files(dataset, &options);
        lapse_model *model = NULL;
        assert_int_equal(lapse_model_load(small_path("one"), &model, NULL), LAPSE_OK);
        assert_non_null(lp_model_tensor_find(model, "field.0.embedding"));
        assert_non_null(lp_model_tensor_find(model, "field.2.weight"));
        for (int t = 0; classifies && lapse_model_target(model, t); t++) {
            lapse_evaluate_options evaluate;
            lapse_scores scores;
            lapse_evaluate_options_default(&evaluate);
            evaluate.target = lapse_model_target(model, t);
            assert_int_equal(lapse_evaluate(model, dataset, &evaluate, &scores, NULL), LAPSE_OK);
            assert_true(isfinite(scores.log_loss) && scores.log_loss > 0);
            lapse_scores_clear(&scores);
        }
        lapse_model_free(model);
    }
    lp_buffer_clear(&text);
    lapse_dataset_close(dataset);
}

/* ------------------------------------------------------------------------------------------ extension points ---- */

/* A model of the tests: a user vector added to the event's embedding, and a loss that adds the time to the next event, scaled by
 * a parameter: what models with user vectors and likelihoods of time need. */
static lp_value *seen_gap;

static void build_extended(lp_builder *b)
{
    lp_value *z = lp_input_layer(b);
    lp_value *users =
        lp_graph_parameter(b->graph, "user.embedding", b->config->sequences + 1, b->config->dims, LP_INIT_NORMAL, 1);
    z = lp_add(b->graph, z, lp_embed(b->graph, users, b->feeds[LP_FEED_SEQUENCE]));
    lp_output_layer(b, lp_at_targets(b, z));
}

static lp_value *extended_loss(lp_builder *b)
{
    lp_value *frequency = lp_graph_parameter(b->graph, "gap.log_period", 1, 1, LP_INIT_ONES, 0);
    seen_gap = lp_basis(b->graph, b->feeds[LP_FEED_TARGET_GAP], lp_harmonics(b->graph, frequency, 1)); /* [A x 2] */
    lp_value *first =
        lp_cross_entropy(b->graph, seen_gap, b->feeds[LP_FEED_ACTION]); /* any scalar of the gap will do */
    return lp_add(b->graph, lp_task_loss(b), first);
}

static void models_see_users_and_gaps(void **state)
{
    (void)state;
    static const lp_model_row row = {.name = "extended",
                                     .summary = "a model of the tests",
                                     .tasks = LP_TASKS_ALL,
                                     .sequence_input = true,
                                     .build = build_extended,
                                     .loss = extended_loss};
    lapse_dataset *dataset = small_train_data(3);
    lp_model_config config = small_config_of(&row, 4);
    config.sequences = (int)dataset->sequence_count;
    lapse_model *model = NULL;
    assert_int_equal(lp_model_new(&config, &dataset->types, &model, NULL), LAPSE_OK);
    lp_network_init_parameters(&model->network.graph, 7, model->parameters);
    model->fingerprint = lp_dataset_fingerprint(dataset);
    lp_network network;
    assert_int_equal(lp_network_build(&network, &config, true, NULL), LAPSE_OK);
    assert_true(lp_network_reads(&network, LP_FEED_TARGET_GAP) && lp_network_reads(&network, LP_FEED_SEQUENCE));
    assert_false(lp_network_reads(&model->network, LP_FEED_TARGET_GAP));
    assert_true(lp_network_reads(&model->network, LP_FEED_SEQUENCE));
    /* A batch has the right gaps and sequences. */
    lp_id_map id_map;
    lp_batch batch;
    lp_windows windows = {0};
    lp_targets targets = {.dataset = dataset, .wanted = LP_SPLIT_COUNT, .context = 5};
    assert_int_equal(lp_id_map_init(&id_map, model, dataset, NULL), LAPSE_OK);
    assert_int_equal(lp_batch_init(&batch, 8, 5, 3, 0, NULL), LAPSE_OK);
    lp_batch_inputs inputs = {.target_gap = true, .sequence_id = true, .position_from_end = true};
    assert_int_equal(lp_batch_init_inputs(&batch, inputs, NULL), LAPSE_OK);
    assert_int_equal(lp_windows_evaluation(&windows, &targets, NULL), LAPSE_OK);
    lp_batch_fill(&batch, &windows, 2, 8, &targets, true, &id_map.columns);
    for (int shard = 0; shard < batch.shard_count; shard++)
        for (int i = batch.shard_targets[shard]; i < batch.shard_targets[shard + 1]; i++) {
            int token = batch.shard_token[shard] + batch.target_position[i];
            assert_true(fabs(batch.target_gap[i] - (batch.query_time[token] - batch.time[token])) < 1e-9);
        }
    for (int w = 0, t = 0; w < 8; w++)
        for (int k = 0; k < windows.windows[2 + w].count; k++, t++) {
            assert_int_equal(batch.sequence_id[t], windows.windows[2 + w].sequence + 1);
            assert_int_equal(batch.position_from_end[t], windows.windows[2 + w].count - 1 - k);
        }
    model->fingerprint++; /* other data: its sequences are unknown */
    lp_id_map_clear(&id_map);
    assert_int_equal(lp_id_map_init(&id_map, model, dataset, NULL), LAPSE_OK);
    lp_batch_fill(&batch, &windows, 2, 8, &targets, true, &id_map.columns);
    assert_int_equal(batch.sequence_id[0], 0);
    model->fingerprint--;
    model->config.sequences--; /* a file that lies about its data: no row is read past the table's end */
    lp_id_map_clear(&id_map);
    assert_int_equal(lp_id_map_init(&id_map, model, dataset, NULL), LAPSE_OK);
    assert_false(id_map.columns.sequences_known);
    model->config.sequences++;
    /* A session has the vector of the unknown user. */
    double one[5], two[5];
    lapse_session *session = NULL;
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_append(session, 5, lapse_model_event_type_name(model, 1), NULL), LAPSE_OK);
    assert_int_equal(lapse_session_predict(session, 6, one, NULL), LAPSE_OK);
    float *users = lp_model_tensor_find(model, "user.embedding")->data;
    users[4] += 1; /* sequence 1 */
    assert_int_equal(lapse_session_predict(session, 6, two, NULL), LAPSE_OK);
    assert_memory_equal(one, two, sizeof one);
    users[0] += 1; /* unknown */
    lapse_session_free(session);
    assert_int_equal(lapse_session_new(model, &session, NULL), LAPSE_OK);
    assert_int_equal(lapse_session_append(session, 5, lapse_model_event_type_name(model, 1), NULL), LAPSE_OK);
    assert_int_equal(lapse_session_predict(session, 6, two, NULL), LAPSE_OK);
    assert_memory_not_equal(one, two, sizeof one);
    lapse_session_free(session);
    lp_id_map_clear(&id_map);
    lp_batch_clear(&batch);
    lp_windows_clear(&windows);
    lp_graph_clear(&network.graph);
    lapse_model_free(model);
    lapse_dataset_close(dataset);
}

static int teardown(void **state)
{
    (void)state;
    small_paths_remove();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recurrent_layers_are_there),
        cmocka_unit_test(rows_are_complete),
        cmocka_unit_test(gradients),
        cmocka_unit_test(threads_resume_and_files),
        cmocka_unit_test(evaluation_is_that_of_sessions),
        cmocka_unit_test(many_queries_are_those_of_sessions),
        cmocka_unit_test(fields_and_actions),
        cmocka_unit_test(models_see_users_and_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
