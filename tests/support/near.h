/* near.h: doubles compared to within a tolerance; NaN is near nothing. Include after cmocka.h. */
#ifndef TESTS_NEAR_H
#define TESTS_NEAR_H

#include <math.h>

#define assert_near(value, expected, tolerance)                                      \
    do {                                                                             \
        double near_value_ = (value), near_expected_ = (expected);                   \
        if (!(fabs(near_value_ - near_expected_) <= (tolerance)))                    \
            fail_msg("%s is %.17g, not %.17g", #value, near_value_, near_expected_); \
    } while (0)

#endif
