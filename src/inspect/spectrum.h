/* spectrum.h: internal functions on spectra. The public functions are in lapse.h. */
#ifndef LP_SPECTRUM_H
#define LP_SPECTRUM_H

#include "base/error.h"
#include "lapse_lab.h"

/* Allocates `count` frequencies, all zero. Free with lapse_spectrum_clear. */
lapse_status lp_spectrum_init(lapse_spectrum *spectrum, int count, lapse_error *error);

/* Computes periods, harmonics, weights and order from frequencies and amplitudes; fails if those are not finite. */
lapse_status lp_spectrum_complete(lapse_spectrum *spectrum, lapse_error *error);

/* The shortest and the longest finite period; a day if there is none. */
void lp_spectrum_periods(const lapse_spectrum *spectrum, double *shortest, double *longest);

/* The exact mean of cos(frequency s), and of the sine, over s from .. to: for a cell of a figure that is wider than
 * the wave. */
double lp_cosine_mean(double frequency, double from, double to);
double lp_sine_mean(double frequency, double from, double to);

#endif
