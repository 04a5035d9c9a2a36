# Times differ from run to run: numbers are replaced by N. tests/unit/test_cuda_bench.c tests which launches there are.
$ lapse bench --preset so --rounds 1 --batch 1 --device cuda --precision tf32 >out && sed -n 3p out
| GPU        emulated GPU, compute capability 9.0, 1 multiprocessors, 227 KB of shared memory for a block; copies in bulk, dependent launches on, bf16 by warpgroups
$ sed 3d out | head -12 | sed -E 's/\b[0-9][0-9.,e-]*[kM]?/N/g; s/ +/ /g; s/^(epoch) .* ms/\1 N ms/'
| preset so, train: N items, N parameters
| machine cuda, tf32: peak N GFLOP/s, copy bandwidth N GB/s
| checked one step against the reference kernels in double: largest gradient error N
| step N histories, N input events, N target events, N GFLOP
| time median N ms, minimum N Nth percentile N of N
| epoch N ms, N steps
| speed N events/s, N GFLOP/s, N % of peak
|
| Launches timed one by one, minimum of all rounds: N us in total. In a step independent launches run
| concurrently. A launch of several nodes has the name of the first node and the roofline of all.
|
| launch op type nodes us fraction GFLOP/s GB/s roofline, us x roofline
$ tail -n +14 out | awk '$1 != "-" { print $3 }' | sort -u
| fused
| node
| reduction
| rows
$ tail -n +14 out | awk '$1 != "-" { print $1 }' | sort -n | awk '$1 != NR' | wc -l
| 0
$ grep ' - ' out | awk '$1 == "-" { print $1, $2, $3, $4 }'
| - (adam) - -
$ lapse bench --preset so --rounds 1 --batch 1 --device cuda --json >out.json && grep -A 9 -m 1 '"launch":' out.json | sed -E 's/: [0-9.e+-]+/: N/; s/"(op|type)": "[a-z_]*"/"\1": NAME/'
|       "launch": N,
|       "type": NAME,
|       "nodes": N,
|       "op": NAME,
|       "calls": N,
|       "seconds": N,
|       "flop": N,
|       "bytes": N,
|       "roofline": N
|     },
$ grep -c '"ops"\|"launches"' out.json
| 1
$ grep -h '"launches"\|"device"\|"precision"' out.json
|   "device": "cuda",
|   "precision": "bf16",
|   "launches": [
