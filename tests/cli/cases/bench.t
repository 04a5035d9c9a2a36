# Times differ from run to run: numbers are replaced by N, and ops are sorted by name.
$ lapse bench --preset so --rounds 1 --batch 16 --threads 1 | head -10 | sed -E 's/[0-9][0-9.,e-]*k?/N/g; s/x86-N-vN|portable/LEVEL/'
| preset     so, train: N items, N parameters
| machine    N thread, xNvN: peak N GFLOP/s, copy bandwidth N GB/s
| checked    one step against the reference kernels in double: largest gradient error N
| step       N histories, N input events, N target events, N GFLOP
| time       median N ms, minimum N Nth percentile N of N
| epoch      N ms, N steps
| speed      N events/s, N GFLOP/s, N % of peak
|
| Minimum time of each op over all rounds, summed over threads: an undisturbed step of N ms.
| minimum    N events/s, N GFLOP/s, N % of peak
$ lapse bench --preset so --rounds 1 --batch 16 --threads 1 | sed -n '13,$p' | cut -d ' ' -f 1 | grep -v waiting | sort
| (adam)
| (batch)
| add
| attention
| attention_gradient
| basis
| basis_gradient
| column_dot
| cross_entropy
| cross_entropy_gradient
| dropout
| embed
| embed_gradient
| harmonics
| harmonics_gradient
| layer_norm
| layer_norm_gradient
| linear
| linear_outer
| reflect
| reflect_gradient
| relu
| relu_gradient
| scale_columns
$ lapse bench --preset so --what predict --rounds 1 --threads 1 | head -10 | sed -E 's/[0-9][0-9.,e-]*[kM]?/N/g; s/x86-N-vN|portable/LEVEL/'
| preset     so, predict: N items, N parameters
| machine    N thread, xNvN: peak N GFLOP/s, copy bandwidth N GB/s
| checked    one step against the reference kernels in double: largest gradient error N
| split      N histories, N input events, N target events, N GFLOP
| time       median N ms, minimum N Nth percentile N of N
| speed      N events/s, N GFLOP/s, N % of peak
|
| Minimum time of each op over all rounds, summed over threads: an undisturbed step of N ms.
| minimum    N events/s, N GFLOP/s, N % of peak
|
$ lapse bench --preset so --rounds 1 --batch 16 --threads 1 --json | sed '/"ops"/,$d; s/"[0-9.x-]*",/"N",/; s/: [0-9.e+-]*,/: N,/; s/"x86-64-v."\|"portable"/"LEVEL"/'
| {
|   "version": "N",
|   "preset": "so",
|   "what": "train",
|   "device": "cpu",
|   "precision": "fp32",
|   "level": "LEVEL",
|   "threads": N,
|   "rounds": N,
|   "items": N,
|   "parameters": N,
|   "error": N,
|   "peak_flop_per_second": N,
|   "bandwidth_bytes_per_second": N,
|   "histories": N,
|   "input_events": N,
|   "target_events": N,
|   "flop": N,
|   "step_seconds": N,
|   "step_best_seconds": N,
|   "step_p90_seconds": N,
|   "step_minimum_seconds": N,
|   "steps": N,
|   "epoch_seconds": N,
|   "events_per_second": N,
|   "fraction_of_peak": N,
|   "step_minimum_fraction_of_peak": N,
$ lapse bench --preset walmart
! lapse: --preset takes one of ml-1m, ml-1m-softmax, so, catalogue, not 'walmart'
! lapse: see `lapse bench --help`
= 2
$ lapse bench --what sleep
! lapse: --what takes one of train, predict, not 'sleep'
! lapse: see `lapse bench --help`
= 2
$ lapse bench --rounds 0
! lapse: rounds cannot be 0; it can be from 1 to 100000
= 2
$ lapse bench so
! lapse: bench: unexpected argument 'so'
! lapse: see `lapse bench --help`
= 2
# Sizes of the caller's own.
$ lapse bench --preset so --rounds 1 --batch 4 --threads 1 --dims 12 --heads 3 --blocks 1 --context 20 --encoding bochner --periods 5 | head -1
| preset     so, train: 22 items, 1,872 parameters
$ lapse bench --preset so --dims 12 --heads 5
! lapse: heads (5) must divide dims (12)
= 2
$ lapse bench --heads 9
! lapse: --heads takes a whole number from 1 to 8, not '9'
! lapse: see `lapse bench --help`
= 2
