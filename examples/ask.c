/* ask.c: loads a model, appends three events to a session, and predicts one hour and three days after the last.
 *
 *   cc ask.c $(pkg-config --cflags --libs lapse) -o ask && ./ask model.safetensors */
#include <stdio.h>
#include <stdlib.h>

#include <lapse.h>

int main(int argc, char **argv)
{
    const double start = 1767225600, hour = 3600; /* 2026-01-01T00:00:00Z */
    const double after[] = {1 * hour, 72 * hour};
    lapse_model *model = NULL;
    lapse_session *session = NULL;
    double *probability = NULL;
    lapse_error error;
    lapse_status status = lapse_model_load(argc > 1 ? argv[1] : "model.safetensors", &model, &error);
    if (status == LAPSE_OK)
        status = lapse_session_new(model, &session, &error);
    int64_t types = status == LAPSE_OK ? lapse_model_event_type_count(model) : 0;
    for (int i = 0; i < 3 && status == LAPSE_OK; i++)
        status = lapse_session_append(session, start + i * hour, lapse_model_event_type_name(model, i % types), &error);
    if (status == LAPSE_OK && !(probability = calloc((size_t)types, sizeof *probability)))
        return 1;
    for (int i = 0; i < 2 && status == LAPSE_OK; i++) {
        status = lapse_session_predict(session, start + 2 * hour + after[i], probability, &error);
        int64_t best = 0;
        for (int64_t type = 1; type < types; type++)
            best = probability[type] > probability[best] ? type : best;
        if (status == LAPSE_OK)
            printf("%.0f h later: %s (%.1f %%)\n", after[i] / hour, lapse_model_event_type_name(model, best),
                   100 * probability[best]);
    }
    if (status != LAPSE_OK)
        fprintf(stderr, "ask: %s%s%s\n", error.file, error.file[0] ? ": " : "", error.message);
    free(probability);
    lapse_session_free(session);
    lapse_model_free(model);
    return status == LAPSE_OK ? 0 : 1;
}
