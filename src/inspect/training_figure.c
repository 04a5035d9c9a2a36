/* training_figure.c: training loss and validation by epoch or by seconds, in one figure, with the epoch that was saved. */
#include "inspect/inspection.h"

#include "base/text.h"
#include "model/history.h"

#include <stdio.h>
#include <string.h>

static bool has_seconds(const lp_inspection *about)
{
    int known = 0;
    for (int i = 0; i < about->epochs; i++)
        known += isfinite(about->seconds[i]);
    return known > 0;
}

/* One of the model's networks. */
typedef struct network {
    bool (*history)(const lapse_model *model, int index, lapse_epoch *epoch);
    const char *id, *saved; /* of the figure; the property of the saved epoch */
    bool times;             /* the network of times, whose epochs have no seconds */
} network;

static double position(const lp_inspection *about, const network *n, int epoch)
{
    if (n->times || !has_seconds(about))
        return epoch;
    return epoch <= about->epochs ? about->seconds[epoch - 1] : NAN;
}

/* The validation loss that is comparable with the training loss, the sum over all targets; NaN for recommenders, which have none. */
static double loss_of(const lapse_epoch *epoch)
{
    double sum = 0;
    bool any = false;
    for (int m = 0; m < epoch->metric_count; m++)
        if (strstr(epoch->metrics[m].name, "loss")) {
            any = true;
            sum += epoch->metrics[m].value;
        }
    return any ? sum : NAN;
}

enum { TRAINING_LOSS = -2, VALIDATION_LOSS = -1 }; /* or a metric, by its index */

static double value_of(const lapse_epoch *epoch, int curve)
{
    return curve == TRAINING_LOSS     ? epoch->loss
           : curve == VALIDATION_LOSS ? loss_of(epoch)
                                      : epoch->metrics[curve].value;
}

/* Adds a curve, divided by `scale`. */
static void add_curve(const lp_inspection *about, const network *n, lp_figures *figures, lp_figure *f, const char *name,
                      int curve, double scale)
{
    lp_series *series = lp_figure_series(figures, f, name, LP_MARK_LINE);
    series->colour = curve == TRAINING_LOSS ? LP_COLOUR_OTHER : LP_COLOUR_MODEL;
    lapse_epoch row;
    for (int i = 0; n->history(about->model, i, &row); i++)
        lp_series_add(figures, series, position(about, n, row.epoch), value_of(&row, curve) / scale);
}

static void network_figure(const lp_inspection *about, const network *n, lp_figures *figures)
{
    lapse_epoch first, last = {0};
    if (!n->history(about->model, 0, &first))
        return;
    const char *property = lp_model_property_find(about->model, n->saved);
    double saved = NAN;
    int epochs = 0;
    if (property && !lp_number_parse(property, property + strlen(property), &saved))
        saved = NAN;
    for (lapse_epoch row; n->history(about->model, epochs, &row); epochs++)
        last = row;
    lp_figure *f =
        lp_figures_add(figures, n->id,
                       isnan(saved) ? "Training and validation"
                                    : lp_figures_text(figures, "%s %.0f of %d was saved%s",
                                                      n->times ? "Of the network of times, epoch" : "Epoch", saved,
                                                      last.epoch,
                                                      saved == last.epoch ? ": more epochs may give a better model"
                                                                          : ", the best on validation data"),
                       "");
    if (has_seconds(about) && !n->times)
        f->x = (lp_figure_axis){.name = "time since the start of the run", .column = "seconds", .type = LP_AXIS_TIME};
    else
        f->x = (lp_figure_axis){.name = "epoch", .column = "epoch", .type = LP_AXIS_WHOLE};
    f->series_column = "curve";
    double top = 1, best = 0;
    lapse_epoch row;
    for (int i = 0; n->history(about->model, i, &row); i++)
        best = fmax(best, row.metrics[0].value);
    if (!isnan(loss_of(&first))) {
        f->caption = "Nats per event; lower is better. Dropout raises the training loss. A validation loss that rises "
                     "is overfitting.";
        f->y = (lp_figure_axis){.name = "loss", .column = "value"};
        add_curve(about, n, figures, f, "training loss", TRAINING_LOSS, 1);
        add_curve(about, n, figures, f, "validation loss", VALIDATION_LOSS, 1);
        top = fmax(first.loss, loss_of(&first));
    } else {
        f->caption = lp_figures_text(
            figures, "The loss in percent of its first value, %.3f nats, and the score in percent of its best, %.3f.",
            first.loss, best);
        f->y = (lp_figure_axis){.name = "percent", .column = "value", .type = LP_AXIS_PERCENT};
        add_curve(about, n, figures, f, "training loss", TRAINING_LOSS, first.loss);
        add_curve(about, n, figures, f, lp_figures_text(figures, "validation %s", first.metrics[0].name), 0,
                  best > 0 ? best : 1);
    }
    if (!isnan(saved) && isfinite(position(about, n, (int)saved))) {
        lp_series *mark =
            lp_figure_series(figures, f, lp_figures_text(figures, "saved: epoch %.0f", saved), LP_MARK_LINE);
        mark->colour = LP_COLOUR_REFERENCE;
        lp_series_add(figures, mark, position(about, n, (int)saved), 0);
        lp_series_add(figures, mark, position(about, n, (int)saved), top);
    }
}

lapse_status lp_training_figure(lp_inspection *about, lp_figures *figures, lapse_error *error)
{
    static const network networks[] = {{lapse_model_history, "training", "score.epoch", false},
                                       {lapse_model_times_history, "training-times", "score.time.epoch", true}};
    lapse_epoch first;
    (void)error;
    if (!lapse_model_history(about->model, 0, &first)) {
        lp_figures_missing(figures, "training", "Training",
                           "The model is a baseline, fitted by counting: there are no epochs.");
        return LAPSE_OK;
    }
    for (int i = 0; i < 2; i++)
        network_figure(about, &networks[i], figures);
    return LAPSE_OK;
}
