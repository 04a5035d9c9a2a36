# A model close to its initialization, so that its periods are known.
$ lapse import events.csv -o events.lapse >/dev/null
$ lapse train events.lapse -o m.safetensors --encoding mercer --periods 2 --harmonics 2 --period-min 1h --period-max 1d \
    --dims 4 --epochs 1 --learning-rate 1e-12 --threads 1 >/dev/null 2>&1
$ lapse kernel m.safetensors --points 12
| model      m.safetensors, encoding mercer
| kernel     4 frequencies, K(0) = 2.0000
|
| Spectrum, by descending weight
| period         harmonic  cosine    sine  weight  fraction
| 1 day                 -  0.7071  0.7071  0.5000    25.0 %
| 12 hours     2 of 1 day  0.7071  0.7071  0.5000    25.0 %
| 1 hour                -  0.7071  0.7071  0.5000    25.0 %
| 30 minutes  2 of 1 hour  0.7071  0.7071  0.5000    25.0 %
|
| Kernel, on a log axis
| lag            K(lag)  K(lag)/K(0)
| 3 minutes      1.8798        0.940                      |###################
| 5.26 minutes   1.6516        0.826                      |#################
| 9.22 minutes   1.1066        0.553                      |###########
| 16.2 minutes   0.4480        0.224                      |####
| 28.3 minutes   0.9581        0.479                      |##########
| 49.6 minutes   0.8943        0.447                      |#########
| 1.45 hours     0.7569        0.378                      |########
| 2.54 hours     0.4607        0.230                      |#####
| 4.46 hours    -0.2038       -0.102                    ##|
| 7.81 hours    -0.6922       -0.346               #######|
| 13.7 hours    -0.6864       -0.343               #######|
| 1 day          2.0000        1.000                      |####################
|
| Phi at lags from 3 minutes to 1 day: = and - below zero, + and # above, # is 0.7071
| 1 day       cosine  [########+-=#]
|             sine    [      ++##- ]
| 12 hours    cosine  [######+ --+#]
|             sine    [     ++#+=# ]
| 1 hour      cosine  [##+ =+===+-#]
|             sine    [++## =+-+== ]
| 30 minutes  cosine  [#+-=#-###--#]
|             sine    [+## -=-+--+ ]
$ lapse kernel m.safetensors --axis linear --from 0s --to 1d --points 5 --part kernel
| model      m.safetensors, encoding mercer
| kernel     4 frequencies, K(0) = 2.0000
|
| Kernel, on a linear axis
| lag        K(lag)  K(lag)/K(0)
| 0 seconds  2.0000        1.000                      |####################
| 6 hours    0.5000        0.250                      |#####
| 12 hours   1.0000        0.500                      |##########
| 18 hours   0.5000        0.250                      |#####
| 1 day      2.0000        1.000                      |####################
$ lapse kernel m.safetensors --from 1m --to 2y --points 4 --part kernel
| model      m.safetensors, encoding mercer
| kernel     4 frequencies, K(0) = 2.0000
|
| Kernel, on a log axis
| lag         K(lag)  K(lag)/K(0)
| 1 minute    1.9863        0.993                      |####################
| 1.7 hours   0.2126        0.106                      |##
| 7.18 days  -0.4322       -0.216                  ####|
| 2 years     0.9998        0.500                      |##########
$ lapse kernel m.safetensors --part spectrum --top 1
| model      m.safetensors, encoding mercer
| kernel     4 frequencies, K(0) = 2.0000
|
| Spectrum, by descending weight
| period  harmonic  cosine    sine  weight  fraction
| 1 day          -  0.7071  0.7071  0.5000    25.0 %
| and 3 more; --top 0 shows all
$ lapse kernel m.safetensors --from 10m --to 40m --points 3 --csv
| lag,kernel,cosine1,cosine2,cosine3,cosine4,sine1,sine2,sine3,sine4
| 600,0.997621572,0.353553453,-0.353553247,0.70643376,0.704416015,0.612372385,0.612372505,0.03084356,0.0616284075
| 1200,0.490501114,-0.353553247,-0.35355366,0.704416015,0.696364231,0.612372505,-0.612372266,0.0616284075,0.122787786
| 2400,0.462250376,-0.35355366,-0.353552833,0.696364231,0.664463024,-0.612372266,0.612372743,0.122787786,0.241844728
$ lapse kernel m.safetensors --points 2 --csv --part kernel
| lag,kernel
| 180.000019337,1.87982252
| 86400.0114892,1.99999993
$ lapse kernel m.safetensors --to 1h --points 2 --csv --part phi | cut -d, -f1-3
| lag,cosine1,cosine2
| 180.000019337,0.6724985,0.572061393
| 3600,0.707106769,0.707106769
$ lapse kernel m.safetensors --csv --part spectrum
| frequency,period,harmonic,cosine,sine,weight
| 7.27220424961e-05,86400.0114892,1,0.707106769,0.707106769,0.499999983
| 0.000145444084992,43200.0057446,2,0.707106769,0.707106769,0.499999983
| 0.0017453290645,3600.00038674,1,0.707106769,0.707106769,0.499999983
| 0.00349065812899,1800.00019337,2,0.707106769,0.707106769,0.499999983
$ lapse kernel m.safetensors --json --from 10m --to 40m --points 2
| {
|   "model": "m.safetensors",
|   "encoding": "mercer",
|   "frequencies": 4,
|   "kernel_at_zero": 1.99999993,
|   "spectrum": [
|     {
|       "feature": 3,
|       "frequency": 7.27220424961e-05,
|       "period": 86400.0114892,
|       "period_words": "1 day",
|       "harmonic": 1,
|       "cosine": 0.707106769,
|       "sine": 0.707106769,
|       "weight": 0.499999983
|     },
|     {
|       "feature": 4,
|       "frequency": 0.000145444084992,
|       "period": 43200.0057446,
|       "period_words": "12 hours",
|       "harmonic": 2,
|       "cosine": 0.707106769,
|       "sine": 0.707106769,
|       "weight": 0.499999983
|     },
|     {
|       "feature": 1,
|       "frequency": 0.0017453290645,
|       "period": 3600.00038674,
|       "period_words": "1 hour",
|       "harmonic": 1,
|       "cosine": 0.707106769,
|       "sine": 0.707106769,
|       "weight": 0.499999983
|     },
|     {
|       "feature": 2,
|       "frequency": 0.00349065812899,
|       "period": 1800.00019337,
|       "period_words": "30 minutes",
|       "harmonic": 2,
|       "cosine": 0.707106769,
|       "sine": 0.707106769,
|       "weight": 0.499999983
|     }
|   ],
|   "axis": "log",
|   "lags": [
|     {
|       "lag": 600,
|       "kernel": 0.997621572,
|       "phi": [
|         0.353553453,
|         -0.353553247,
|         0.70643376,
|         0.704416015,
|         0.612372385,
|         0.612372505,
|         0.03084356,
|         0.0616284075
|       ]
|     },
|     {
|       "lag": 2400,
|       "kernel": 0.462250376,
|       "phi": [
|         -0.35355366,
|         -0.353552833,
|         0.696364231,
|         0.664463024,
|         -0.612372266,
|         0.612372743,
|         0.122787786,
|         0.241844728
|       ]
|     }
|   ]
| }

# The SVG plot. A second one replaces the first; on standard output there is only the plot.
$ lapse kernel m.safetensors --svg k.svg && lapse kernel m.safetensors --svg k.svg && lapse kernel m.safetensors --svg - | cmp - k.svg
| wrote      k.svg
| wrote      k.svg
$ head -c 47 k.svg && echo && tail -1 k.svg
| <svg xmlns="http://www.w3.org/2000/svg" width="
| </svg>
$ grep -c '<circle' k.svg
| 6

# Models without a kernel.
$ lapse train events.lapse -o p.safetensors --encoding position --dims 4 --epochs 1 --threads 1 >/dev/null 2>&1
$ lapse kernel p.safetensors 2>&1 | sed 's/one: .*/one: .../'
| lapse: the encoding 'position' does not use lags, so it has no kernel; these have one: ...
$ lapse kernel p.safetensors >/dev/null 2>&1
= 2
$ lapse train events.lapse -o markov.safetensors --model markov >/dev/null 2>&1
$ lapse kernel markov.safetensors 2>&1 | sed 's/time: .*/time: .../'
| lapse: the model 'markov' does not use lags, so it has no kernel; attention has one with an encoding of time: ...
$ lapse kernel events.lapse
! lapse: events.lapse: this is not a whole Lapse model: it does not begin with a safetensors header
= 1
$ lapse kernel nothing.safetensors
! lapse: nothing.safetensors: cannot open: No such file or directory
= 1
$ lapse kernel
! lapse: kernel needs MODEL: model file with a time encoding
! lapse: see `lapse kernel --help`
= 2

# Invalid arguments.
$ lapse kernel m.safetensors --points 1
! lapse: points is 1; it must be 2 to 100000
= 2
$ lapse kernel m.safetensors --points 100001
! lapse: points is 100001; it must be 2 to 100000
= 2
$ lapse kernel m.safetensors --points -3
! lapse: --points takes an integer, 0 or more, not '-3'
! lapse: see `lapse kernel --help`
= 2
$ lapse kernel m.safetensors --axis cubic
! lapse: --axis takes one of log, linear, not 'cubic'
! lapse: see `lapse kernel --help`
= 2
$ lapse kernel m.safetensors --from 2d --to 1h
! lapse: lags begin at 2 days and end at 1 hour; the end must be larger
= 2
$ lapse kernel m.safetensors --from 5
! lapse: --from takes a duration with its unit, such as 90s, 15m, 3h, 2d, 1w or 2y, not '5'
! lapse: see `lapse kernel --help`
= 2
$ lapse kernel m.safetensors --part everything
! lapse: --part takes one of all, spectrum, kernel, phi, not 'everything'
! lapse: see `lapse kernel --help`
= 2
$ lapse kernel m.safetensors --json --csv
! lapse: --csv, --json and --svg are mutually exclusive
! lapse: see `lapse kernel --help`
= 2
$ lapse kernel m.safetensors --csv --svg k.svg
! lapse: --csv, --json and --svg are mutually exclusive
! lapse: see `lapse kernel --help`
= 2
$ lapse kernel m.safetensors --svg no/such/folder/k.svg
! lapse: no/such/folder/k.svg: cannot write: No such file or directory
= 1
$ lapse kernel m.safetensors --svg ''
! lapse: --svg takes a FILE, not ''
! lapse: see `lapse kernel --help`
= 2
$ lapse kernel m.safetensors other.safetensors
! lapse: kernel: unexpected argument 'other.safetensors'
! lapse: see `lapse kernel --help`
= 2
