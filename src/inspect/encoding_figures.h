/* encoding_figures.h: figures of a time encoding, from its spectrum. */
#ifndef LP_ENCODING_FIGURES_H
#define LP_ENCODING_FIGURES_H

#include "inspect/figure.h"
#include "inspect/spectrum.h"
#include "lapse_lab.h"

/* Weight of each period in the kernel, on the axis of the lags. */
void lp_spectrum_figure(lp_figures *figures, const lapse_spectrum *spectrum, const lapse_lags *lags);

/* K(lag) and Phi(lag) over resolved lags, in this many columns. */
void lp_kernel_figure(lp_figures *figures, const lapse_spectrum *spectrum, const lapse_lags *lags, int columns);
void lp_phi_figure(lp_figures *figures, const lapse_spectrum *spectrum, const lapse_lags *lags, int columns);

#endif
