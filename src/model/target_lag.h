/* target_lag.h: the lag to the predicted event as an input of networks that are not built on an encoding. */
#ifndef LP_TARGET_LAG_H
#define LP_TARGET_LAG_H

#include "model/model.h"

/* The choice of the encoding, which is none unless it is given: before lp_encoding_options in the tables of a model. */
extern const lp_option lp_target_lag_options[];

/* For the row's resolve and validate: the encoding's options. Encodings of positions are refused. */
lapse_status lp_target_lag_resolve(lp_model_config *config, const lp_fit_data *data, lapse_error *error);
lapse_status lp_target_lag_validate(const lp_model_config *config, lapse_error *error);

/* With an encoding, adds a perceptron of the state and of the encoded lag to the state z [targets x dims]:
 *
 *     z + max(0, z Wz^T + Phi(t' - t) Wl^T + b) Vl^T
 *
 * t is the time of the event at the target position and t' its query time. Otherwise returns z. */
lp_value *lp_target_lag(lp_builder *builder, lp_value *z);

#endif
