/* encoding_figures.h: figures of a time encoding, from its spectrum. */
#ifndef LP_ENCODING_FIGURES_H
#define LP_ENCODING_FIGURES_H

#include "inspect/figure.h"
#include "inspect/spectrum.h"
#include "lapse_lab.h"

/* Weight of each period in the kernel. */
void lp_spectrum_figure(lp_figures *figures, const lapse_spectrum *spectrum);

/* K(lag) and Phi(lag) over resolved lags, in this many columns. */
void lp_kernel_figure(lp_figures *figures, const lapse_spectrum *spectrum, const lapse_lags *lags, int columns);
void lp_phi_figure(lp_figures *figures, const lapse_spectrum *spectrum, const lapse_lags *lags, int columns);

/* K(t1, t2), and the kernel of each period with its harmonics. */
void lp_kernel_pair_figure(lp_figures *figures, const lapse_spectrum *spectrum);
void lp_period_kernel_figure(lp_figures *figures, const lapse_spectrum *spectrum);

/* The density of sampled frequencies, by their periods. */
void lp_density_figure(lp_figures *figures, const lapse_spectrum *spectrum);

#endif
