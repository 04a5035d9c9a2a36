/* spectrum.h: spectra as the rest of this room makes and reads them. The public calls are in lapse.h. */
#ifndef LP_SPECTRUM_H
#define LP_SPECTRUM_H

#include "base/error.h"

/* Room for `count` frequencies, all zero. Ended by lapse_spectrum_clear. */
lapse_status lp_spectrum_init(lapse_spectrum *spectrum, int count, lapse_error *error);

/* Fills periods, harmonics, weights and order from frequencies and amplitudes, and checks that those are numbers. */
lapse_status lp_spectrum_complete(lapse_spectrum *spectrum, lapse_error *error);

/* The exact mean of cos(frequency s), and of the sine, over s from .. to: what a picture shows in a cell that is wider
 * than the wave. */
double lp_cosine_mean(double frequency, double from, double to);
double lp_sine_mean(double frequency, double from, double to);

#endif
