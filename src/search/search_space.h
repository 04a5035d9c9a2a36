/* search_space.h: the training options that tuning changes, and the changes that it makes. */
#ifndef LP_SEARCH_SPACE_H
#define LP_SEARCH_SPACE_H

#include "base/random.h"
#include "train/train_options.h"

/* Makes one random change: of an option that has an effect beside the resolved options, and that `fixed` does not set. *given gets
 * the new value, and *name the option. False: there is no such option, or its value is at the end of its range. */
bool lp_search_change(const lapse_train_options *fixed, const lapse_train_options *resolved, lp_random *random,
                      lapse_train_options *given, const char **name);

#endif
