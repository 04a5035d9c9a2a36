/* user_vector.h: a learned vector of each user, where a sequence is a user. */
#ifndef LP_USER_VECTOR_H
#define LP_USER_VECTOR_H

#include "model/model.h"

/* The vector of the user of each token [T x dims], for models with sequence_input. Vectors start at zero. That of an unknown user stays
 * zero: sequences of other data than the model was trained on, and live sessions. */
lp_value *lp_user_vector(lp_builder *builder);

#endif
