# The number of samples by the claim and by its proof, and the measured errors.
$ lapse bound --epsilon 0.3 --tmax 1d --sigma 1/2h --repeats 5
| requested  error below 0.3 at every lag up to 1 day, with probability 95 %
| kernel     exp(-(sigma lag)^2 / 2) with sigma = 1/2h: 61 % of its maximum at lag 2 hours
|
|                            samples  mean error  max error  below 0.3
| Claim 1, time in days        2,656      0.0274     0.0444     5 of 5
| Claim 1, time in hours       2,091      0.0286     0.0375     5 of 5
| Claim 1, time in seconds       635      0.0581     0.0714     5 of 5
| corrected proof, any unit      987      0.0466     0.0764     5 of 5
| 1/4 of that                    247      0.0770     0.1095     5 of 5
| 1/16 of that                    62      0.2109     0.3388     4 of 5
|
| measured   at 256 lags, 5.65 minutes apart
$ lapse bound --epsilon 0.3 --tmax 1d --sigma 1/2h --repeats 5 --threads 2 | tail -4
| 1/4 of that                    247      0.0770     0.1095     5 of 5
| 1/16 of that                    62      0.2109     0.3388     4 of 5
|
| measured   at 256 lags, 5.65 minutes apart
$ lapse bound --epsilon 0.3 --tmax 1d --sigma 0.5/h --repeats 2 --delta 0.5 --seed 7 --json
| {
|   "epsilon": 0.3,
|   "tmax": 86400,
|   "sigma": 0.000138888888888889,
|   "delta": 0.5,
|   "repeats": 2,
|   "seed": 7,
|   "claim_days": {
|     "samples": 1837,
|     "mean_error": 0.0278187,
|     "max_error": 0.0361051,
|     "within": 2,
|     "lags": 256,
|     "lag_step": 338.823529
|   },
|   "claim_hours": {
|     "samples": 1272,
|     "mean_error": 0.0315588,
|     "max_error": 0.0406528,
|     "within": 2,
|     "lags": 256,
|     "lag_step": 338.823529
|   },
|   "claim_seconds": {
|     "samples": 0
|   },
|   "proof": {
|     "samples": 680,
|     "mean_error": 0.0416592,
|     "max_error": 0.0439179,
|     "within": 2,
|     "lags": 256,
|     "lag_step": 338.823529
|   },
|   "proof_quarter": {
|     "samples": 170,
|     "mean_error": 0.0876906,
|     "max_error": 0.112348,
|     "within": 2,
|     "lags": 256,
|     "lag_step": 338.823529
|   },
|   "proof_sixteenth": {
|     "samples": 43,
|     "mean_error": 0.23884,
|     "max_error": 0.246953,
|     "within": 2,
|     "lags": 256,
|     "lag_step": 338.823529
|   }
| }
$ lapse bound --tmax 30d --sigma 12/d --repeats 0 --json | grep samples
|     "samples": 31101
|     "samples": 26016
|     "samples": 12914
|     "samples": 12481
|     "samples": 3121
|     "samples": 781

# In seconds, the printed claim can give 0 samples.
$ lapse bound --epsilon 0.5 --tmax 30d --sigma 1/30d --repeats 3
| requested  error below 0.5 at every lag up to 30 days, with probability 95 %
| kernel     exp(-(sigma lag)^2 / 2) with sigma = 1/30d: 61 % of its maximum at lag 30 days
|
|                            samples  mean error  max error  below 0.5
| Claim 1, time in days          388      0.0351     0.0355     3 of 3
| Claim 1, time in hours         185      0.0391     0.0647     3 of 3
| Claim 1, time in seconds         0           -          -          -
| corrected proof, any unit      260      0.0229     0.0376     3 of 3
| 1/4 of that                     65      0.0653     0.0933     3 of 3
| 1/16 of that                    17      0.0755     0.1406     3 of 3
|
| measured   at 256 lags, 2.82 hours apart

# Rows that take too long are skipped; a coarse lag step gives a note.
$ lapse bound --epsilon 0.001 --tmax 30d --sigma 1/2h --repeats 3
| requested  error below 0.001 at every lag up to 30 days, with probability 95 %
| kernel     exp(-(sigma lag)^2 / 2) with sigma = 1/2h: 61 % of its maximum at lag 2 hours
|
|                                samples  mean error  max error  below 0.001
| Claim 1, time in days      384,685,108           -          -            -
| Claim 1, time in hours     333,836,247           -          -            -
| Claim 1, time in seconds   202,817,221           -          -            -
| corrected proof, any unit  161,650,584           -          -            -
| 1/4 of that                 40,412,646           -          -            -
| 1/16 of that                10,103,162           -          -            -
! lapse: rows with - take too long to measure; use fewer --repeats or a larger --epsilon
$ lapse bound --epsilon 1 --delta 0.5 --tmax 10y --sigma 1/1m --repeats 1
| requested  error below 1 at every lag up to 10 years, with probability 50 %
| kernel     exp(-(sigma lag)^2 / 2) with sigma = 1/1m: 61 % of its maximum at lag 1 minute
|
|                            samples  mean error  max error  below 1
| Claim 1, time in days          431      0.1552     0.1552   1 of 1
| Claim 1, time in hours         380      0.1850     0.1850   1 of 1
| Claim 1, time in seconds       249      0.2200     0.2200   1 of 1
| corrected proof, any unit      156      0.2693     0.2693   1 of 1
| 1/4 of that                     39      0.5404     0.5404   1 of 1
| 1/16 of that                    10      0.9350     0.9350   1 of 1
|
| measured   at 131,072 lags, 40.1 minutes apart
! lapse: the lag step exceeds 0.1/sigma: the measurement can miss the largest error

# Invalid arguments.
$ lapse bound
! lapse: bound needs --tmax DURATION: maximum lag, such as 30d
! lapse: see `lapse bound --help`
= 2
$ lapse bound --tmax 1d
! lapse: bound needs --sigma N/DURATION: standard deviation of the frequencies, in radians per duration, such as 1/2h
! lapse: see `lapse bound --help`
= 2
$ lapse bound --tmax 1d --sigma 2h
! lapse: --sigma takes a number per duration, such as 1/2h or 3/d, not '2h'
! lapse: see `lapse bound --help`
= 2
$ lapse bound --tmax 1d --sigma 1/0s
! lapse: --sigma takes a number per duration, such as 1/2h or 3/d, not '1/0s'
! lapse: see `lapse bound --help`
= 2
$ lapse bound --tmax 1d --sigma 1/
! lapse: --sigma takes a number per duration, such as 1/2h or 3/d, not '1/'
! lapse: see `lapse bound --help`
= 2
$ lapse bound --tmax 1d --sigma -1/2h
! lapse: --sigma takes a number per duration, such as 1/2h or 3/d, not '-1/2h'
! lapse: see `lapse bound --help`
= 2
$ lapse bound --tmax 1d --sigma nan/2h
! lapse: --sigma takes a number per duration, such as 1/2h or 3/d, not 'nan/2h'
! lapse: see `lapse bound --help`
= 2
$ lapse bound --tmax 1d --sigma 0x1/2h
! lapse: --sigma takes a number per duration, such as 1/2h or 3/d, not '0x1/2h'
! lapse: see `lapse bound --help`
= 2
$ lapse bound --tmax 1d --sigma 1/2parsecs
! lapse: --sigma takes a number per duration, such as 1/2h or 3/d, not '1/2parsecs'
! lapse: see `lapse bound --help`
= 2
$ lapse bound --tmax 1d --sigma 1e-30/2h
! lapse: sigma is 1.38889e-34 per second; it must be 1e-15 to 1e15
= 2
$ lapse bound --tmax 0s --sigma 1/2h
! lapse: the largest lag is 0 seconds; it must be above 0, at most 1e15
= 2
$ lapse bound --tmax 5 --sigma 1/2h
! lapse: --tmax takes a duration with its unit, such as 90s, 15m, 3h, 2d, 1w or 2y, not '5'
! lapse: see `lapse bound --help`
= 2
$ lapse bound --epsilon 0 --tmax 1d --sigma 1/2h
! lapse: epsilon is 0; it must be 0.0001 to 2, the maximum difference of two kernels with K(0) = 1
= 2
$ lapse bound --epsilon 3 --tmax 1d --sigma 1/2h
! lapse: epsilon is 3; it must be 0.0001 to 2, the maximum difference of two kernels with K(0) = 1
= 2
$ lapse bound --delta 0 --tmax 1d --sigma 1/2h
! lapse: delta is 0; a probability must be above 0 and below 1
= 2
$ lapse bound --delta 1 --tmax 1d --sigma 1/2h
! lapse: delta is 1; a probability must be above 0 and below 1
= 2
$ lapse bound --repeats 2000000 --tmax 1d --sigma 1/2h
| requested  error below 0.1 at every lag up to 1 day, with probability 95 %
| kernel     exp(-(sigma lag)^2 / 2) with sigma = 1/2h: 61 % of its maximum at lag 2 hours
|
|                            samples  mean error  max error  below 0.1
| Claim 1, time in days       25,659           -          -          -
| Claim 1, time in hours      20,574           -          -          -
| Claim 1, time in seconds     7,472           -          -          -
| corrected proof, any unit    9,760           -          -          -
| 1/4 of that                  2,440           -          -          -
| 1/16 of that                   610           -          -          -
! lapse: rows with - take too long to measure; use fewer --repeats or a larger --epsilon
$ lapse bound model.safetensors --tmax 1d --sigma 1/2h
! lapse: bound: unexpected argument 'model.safetensors'
! lapse: see `lapse bound --help`
= 2
