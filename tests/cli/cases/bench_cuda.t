# Times differ from run to run, so numbers are written as N. Which launches there are is the matter of tests/unit/test_cuda_bench.c.
$ lapse bench --preset so --rounds 1 --batch 1 --device cuda --precision tf32 >out && head -12 out | sed -E 's/\b[0-9][0-9.,e-]*[kM]?/N/g; s/ +/ /g; s/^(epoch) .* of/\1 N of/'
| preset so, train: N items, N parameters
| machine cuda, tf32: N GFLOP/s of multiply-adds alone, copies at N GB/s
| checked one step against plain kernels in double: largest error of a gradient N
| step N histories, N events read, N asked for, N GFLOP
| time median N ms, best N N % within N of N
| epoch N of N steps
| speed N events/s, N GFLOP/s, N % of the peak
|
| Launches timed one by one, the least of all rounds: N us together. In a step those that need not wait for
| one another run side by side. A launch of several nodes has the name of the first and the baseline of all.
|
| launch op event type nodes us share GFLOP/s GB/s baseline, us x baseline
$ tail -n +13 out | awk '$1 != "-" { print $3 }' | sort -u
| fused
| node
| pack
| reduction
$ tail -n +13 out | awk '$1 != "-" { print $1 }' | sort -n | awk '$1 != NR' | wc -l
| 0
$ grep ' - ' out | awk '$1 == "-" { print $1, $2, $3, $4 }'
| - (adam) - -
$ lapse bench --preset so --rounds 1 --batch 1 --device cuda --json >out.json && grep -A 9 -m 1 '"launch":' out.json | sed -E 's/: [0-9.e+-]+/: N/; s/"(op|event type)": "[a-z_]*"/"\1": NAME/'
|       "launch": N,
|       "event type": NAME,
|       "nodes": N,
|       "op": NAME,
|       "calls": N,
|       "seconds": N,
|       "flop": N,
|       "bytes": N,
|       "roofline_seconds": N
|     },
$ grep -c '"ops"\|"launches"' out.json
| 1
$ grep -h '"launches"\|"device"\|"precision"' out.json
|   "device": "cuda",
|   "precision": "fp32",
|   "launches": [
