# The baselines are counts, so their scores are exact on every machine.
$ lapse import events.csv -o events.lapse >/dev/null
$ lapse train events.lapse -o markov.safetensors --model markov --order 1 --seed 3 --threads 1
| saved        markov.safetensors after N s
| split        test: 8 events in 1 sequence
| target time  not used: the model does not read the time of the next event
| accuracy     75.00 %
| log-loss     0.6079 nats per event
| macro-F1     0.6167
! Data      events.lapse: 96 events in 12 sequences, 4 event types
! Model     model markov, task classify, target-time known, context 8, order 1
! Run       split-by sequence, seed 3, threads 1
$ lapse train events.lapse -o majority.safetensors --model majority --seed 3 --threads 1 --json
| {
|   "data": "events.lapse",
|   "output": "majority.safetensors",
|   "settings": {
|     "model": "majority",
|     "task": "classify",
|     "target-time": "known",
|     "context": 8,
|     "split-by": "sequence",
|     "seed": 3,
|     "threads": 1
|   },
|   "interrupted": false,
|   "epochs": 0,
|   "best_epoch": 0,
|   "best_score": null,
|   "seconds": N,
|   "scores": {
|     "target": "event",
|     "split": "test",
|     "target_time": "not used",
|     "cases": 8,
|     "sequences": 1,
|     "accuracy": 0.375,
|     "log_loss": 1.37200106,
|     "macro_f1": 0.136363636
|   }
| }
! Data      events.lapse: 96 events in 12 sequences, 4 event types
! Model     model majority, task classify, target-time known, context 8
! Run       split-by sequence, seed 3, threads 1
$ lapse eval markov.safetensors events.lapse --split all --classes
| split        all: 84 events in 12 sequences
| target time  not used: the model does not read the time of the next event
| accuracy     61.90 % (95 % interval 51.25 to 70.79)
| log-loss     0.6593 nats per event (95 % interval 0.6198 to 0.7032)
| macro-F1     0.4786
|
| class  cases  predicted  correct  precision   recall     F1
| view      36         16       10     62.5 %   27.8 %  0.385
| cart      27         44       27     61.4 %  100.0 %  0.761
| buy       15         24       15     62.5 %  100.0 %  0.769
| rate       6          0        0      0.0 %    0.0 %  0.000
$ lapse eval markov.safetensors events.lapse --split valid --bootstrap 0 --json
| {
|   "model": "markov.safetensors",
|   "data": "events.lapse",
|   "target": "event",
|   "split": "valid",
|   "target_time": "not used",
|   "cases": 8,
|   "sequences": 1,
|   "accuracy": 0.625,
|   "log_loss": 0.640293974,
|   "macro_f1": 0.516666667
| }

# The split rule is printed and stored in the model.
$ lapse train events.lapse -o left.safetensors --model majority --threads 1 --split-by leave-one-out
| saved        left.safetensors after N s
| split        test: 12 events in 12 sequences
| target time  not used: the model does not read the time of the next event
| accuracy     33.33 % (95 % interval 8.33 to 58.33)
| log-loss     1.3669 nats per event (95 % interval 1.0893 to 1.6648)
| macro-F1     0.1250
! Data      events.lapse: 96 events in 12 sequences, 4 event types
! Model     model majority, task classify, target-time known, context 8
! Run       split-by leave-one-out, seed 1, threads 1
$ lapse info left.safetensors --all | grep '^split'
| split                 leave-one-out
$ lapse eval left.safetensors events.lapse --split valid --bootstrap 0 | head -1
| split        valid: 12 events in 12 sequences
$ lapse train events.lapse -o left.safetensors --model majority --threads 1 --split-by time 2>&1 | grep -E '^(split|Run)'
| Run       split-by time, seed 1, threads 1
| split        test: 8 events in 1 sequence
$ lapse train events.lapse -o left.safetensors --split-by column
! lapse: the dataset has no split column: import it with --split-column COLUMN, or choose another --split-by rule
= 2
$ lapse train events.lapse -o left.safetensors --split-by coin
! lapse: --split-by takes one of column, sequence, leave-one-out, time, session, not 'coin'
! lapse: see `lapse train --help`
= 2
$ rm left.safetensors*; ls | grep -v '\.csv$\|\.json$\|\.txt$\|\.sh$'
| events.lapse
| majority.safetensors
| markov.safetensors

# Attention: the form of the output. Numbers that depend on the machine's arithmetic are replaced by N.
$ lapse train events.lapse -o m.safetensors --epochs 2 --dims 8 --context 16 --periods 4 --harmonics 2 --batch 4 \
  --seed 3 --threads 1 --no-eval --checkpoint-every 0s 2>&1 | sed -E 's/(loss|accuracy|best|with) [0-9.]+/\1 N/g; s/(best was )?epoch [0-9]+( of|\))/\1epoch N\2/'
| Data      events.lapse: 96 events in 12 sequences, 4 event types
| Model     model attention, size base, task classify, target-time known, context
|           16, dims 8, dropout 0.3, gap-input on, when no, encoding mercer,
|           periods 4, harmonics 2, period-min 4 minutes, period-max 8.37 days,
|           period-init geometric, periods-fixed no, blocks 2, heads 2, projection
|           linear, combine concatenate
| Training  learning-rate 0.002, schedule constant, beta1 0.9, beta2 0.98, l2 0,
|           clip 5, ema-decay 0, batch 4, epochs 2, patience 10, select log-loss,
|           windows all
| Run       split-by sequence, seed 3, device cpu, threads 1, shards 16,
|           checkpoint m.safetensors.checkpoint, checkpoint-every 0 seconds,
|           resume no
| Size      base: --size large takes about 3.3 times the operations of a step
| epoch 1/2 loss N valid log-loss N, accuracy N % (best N, epoch N) N events/s, N s
| epoch 2/2 loss N valid log-loss N, accuracy N % (best N, epoch N) N events/s, N s
| saved        m.safetensors after N s; the best was epoch N of 2 with log-loss N on the validation split; more epochs (--epochs) may give a better one
$ ls m.safetensors*
| m.safetensors
$ lapse eval m.safetensors events.lapse | sed -E 's/[0-9]+\.[0-9]+/N/g'
| split        test: 8 events in 1 sequence
| target time  known: the model is told when the next event happens, and predicts which
| accuracy     N %
| log-loss     N nats per event
| macro-F1     N

# The banner omits options that the encoding does not use.
$ for encoding in bochner-invcdf bochner-normal random none; do lapse train events.lapse -o m.safetensors --epochs 1 --dims 8 \
  --context 16 --batch 4 --encoding $encoding --threads 1 --no-eval 2>&1 | sed -n '/^Model/,/^Training/p' | sed '$d'; done
| Model     model attention, size base, task classify, target-time known, context
|           16, dims 8, dropout 0.3, gap-input on, when no, encoding
|           bochner-invcdf, periods 50, period-min 4 minutes, period-max 8.37
|           days, inverse-cdf mlp-residual, hidden 256, frequency-samples 1,
|           frequency-scale log, independent-draws no, blocks 2, heads 2,
|           projection linear, combine concatenate
| Model     model attention, size base, task classify, target-time known, context
|           16, dims 8, dropout 0.3, gap-input on, when no, encoding
|           bochner-normal, periods 50, period-min 4 minutes, period-max 8.37
|           days, frequency-samples 1, frequency-scale log, independent-draws no,
|           blocks 2, heads 2, projection linear, combine concatenate
| Model     model attention, size base, task classify, target-time known, context
|           16, dims 8, dropout 0.3, gap-input on, when no, encoding random,
|           periods 50, period-min 4 minutes, period-max 8.37 days, blocks 2,
|           heads 2, projection linear, combine concatenate
| Model     model attention, size base, task classify, target-time known, context
|           16, dims 8, dropout 0.3, gap-input off, when no, encoding none, blocks
|           2, heads 2, projection linear, combine concatenate

# Ctrl-C: training stops at the end of the step, saves the best model, prints the command to resume.
$ lapse train events.lapse -o stopped.safetensors --epochs 1000000 --patience 1000000 --dims 8 2>log & \
  for i in $(seq 600); do grep -qs 'epoch 1/' log && break; sleep 0.05; done; kill -INT $!; wait $!; echo "exit $?"; \
  grep '^lapse:' log | sed -E 's/epoch [0-9]+/epoch N/g; s/log-loss [0-9.]+/log-loss N/'; ls stopped*; \
  lapse info stopped.safetensors | head -1
| exit 130
| lapse: stopped in epoch N; the best model so far (epoch N, log-loss N) is saved in stopped.safetensors
| lapse: to resume: lapse train --resume events.lapse -o stopped.safetensors --epochs 1000000 --patience 1000000 --dims 8
| stopped.safetensors
| stopped.safetensors.checkpoint
| file      stopped.safetensors (model)
$ lapse train events.lapse -o stopped.safetensors --epochs 1000000 --patience 1000000 --dims 8 --checkpoint none 2>log2 & \
  for i in $(seq 600); do grep -qs 'epoch 1/' log2 && break; sleep 0.05; done; kill -TERM $!; wait $!; echo "exit $?"; \
  tail -1 log2
| exit 130
| lapse: it cannot be resumed, because checkpoints are disabled

# Invalid runs are refused before any training.
$ lapse train nothing.lapse -o m.safetensors
! lapse: nothing.lapse: cannot open: No such file or directory
= 1
$ lapse train events.lapse -o no/such/folder/m.safetensors
! lapse: no/such/folder/m.safetensors: cannot write: No such file or directory
= 1
$ mkdir folder; lapse train events.lapse -o folder
! lapse: folder: this is a folder; give the name of a file
= 1
$ lapse train events.lapse -o m.safetensors --blocks 9
! lapse: --blocks takes a whole number from 1 to 8, not '9'
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --dims 10 --heads 3
! lapse: heads (3) must divide dims (10)
= 2
$ lapse train events.lapse -o m.safetensors --dropout 2
! lapse: --dropout takes a number from 0 to 0.9, not '2'
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --model markov --order 7
! lapse: --order takes a whole number from 1 to 3, not '7'
! lapse: see `lapse train --help`
= 2
$ lapse eval nothing.safetensors events.lapse
! lapse: nothing.safetensors: cannot open: No such file or directory
= 1
$ lapse eval events.lapse events.lapse
! lapse: events.lapse: this is not a whole Lapse model: it does not begin with a safetensors header
= 1
$ lapse eval markov.safetensors markov.safetensors
! lapse: markov.safetensors: this is a safetensors file (a model or item vectors), not events
= 1
$ printf 'user,time,event\na,1,wave\na,2,wave\n' >other.csv; lapse import other.csv -o other.lapse >/dev/null; \
  lapse eval markov.safetensors other.lapse --split all
! lapse: the dataset has events 'wave', which the model does not know; leave them out of the import
= 1
# Without a GPU, cuda is an error and auto uses the CPU, as the banner says.
$ LAPSE_CUDA_PLUGIN=/nowhere.so lapse train events.lapse -o gpu.safetensors --device cuda 2>&1 | cut -c 1-78
| lapse: no GPU can be used: LAPSE_CUDA_PLUGIN: the plugin could not be opened (
$ cp "$(readlink -f "$(command -v lapse)")" alone; ./alone train events.lapse -o gpu.safetensors --device cuda 2>&1 | sed 's/([^)]*directory)/(...)/'
| lapse: no GPU can be used: the plugin liblapse_cuda.so was not found beside the library. Lapse builds it where nvcc (of the CUDA toolkit) and g++ are on the PATH: install them, then build Lapse again; use --device cpu or auto
$ LAPSE_CUDA_PLUGIN=/nowhere.so lapse train events.lapse -o gpu.safetensors --device auto --epochs 1 --dims 4 --context 8 --no-eval --checkpoint none --threads 1 2>&1 | grep -o 'device cpu\|^Device .*'
| device cpu
| Device    cpu: no GPU can be used: LAPSE_CUDA_PLUGIN: the plugin could not be opened (/nowhere.so: No such file or directory)
$ lapse train events.lapse -o gpu.safetensors --device tpu 2>&1
| lapse: --device takes one of cpu, cuda, auto, not 'tpu'
| lapse: see `lapse train --help`
= 2

# Baselines beside the model's test scores, and warnings where the test split is small.
$ lapse train events.lapse -o m.safetensors --epochs 2 --dims 8 --context 16 --batch 4 --seed 3 --threads 1 2>&1 \
  | sed -n '/^macro-F1/,$p' | sed -E '/^(attention|difference|macro)/s/-?[0-9]+\.[0-9]+/N/g; s/\(-?[0-9.]+ to [0-9.]+\)/(N to N)/; s/is (lower|higher)/is D/; s/(markov [123]|majority)(, the best|:)/B\2/'
| macro-F1     N
|
|            log-loss  accuracy
| attention    N    N %
| majority     1.3720    37.5 %
| markov 1     0.6079    75.0 %
| markov 2     0.4973    75.0 %
| markov 3     0.4453    75.0 %
| difference   log-loss is D by N than that of B, the best baseline: may be chance
| lapse: the test split has 8 events in 1 sequence: too few for reliable scores (at least 30 sequences)
$ lapse train events.lapse -o m.safetensors --epochs 2 --dims 8 --context 16 --batch 4 --seed 3 --threads 1 --json 2>/dev/null \
  | sed -n '/"baselines"/,/}/p' | sed -E 's/"(.*_difference.*)": .*/"\1": N,/'
|   "baselines": [
|     {
|       "name": "majority",
|       "target": "event",
|       "cases": 8,
|       "sequences": 1,
|       "best": false,
|       "log_loss": 1.37200106,
|       "log_loss_low": 1.37200106,
|       "log_loss_high": 1.37200106,
|       "log_loss_difference": N,
|       "log_loss_difference_low": N,
|       "log_loss_difference_high": N,
|       "accuracy": 0.375,
|       "accuracy_low": 0.375,
|       "accuracy_high": 0.375,
|       "accuracy_difference": N,
|       "accuracy_difference_low": N,
|       "accuracy_difference_high": N,
|     },
$ lapse train events.lapse -o m.safetensors --epochs 5 --dims 8 --batch 4 --learning-rate 0.01 --split-by leave-one-out 2>&1 \
  | sed -n '/^difference/,$p' | sed -E 's/-?[0-9]+\.[0-9]+/N/g; s/is (lower|higher)/is D/; s/(markov [123]|majority)(, the best|:)/B\2/'
| difference   log-loss is D by N than that of B, the best baseline (95 % interval N to N): may be chance
| lapse: the test split has 12 events in 12 sequences: too few for reliable scores (at least 30 sequences)
| lapse: these scores do not show that the model differs from B: the 95 % interval of the difference in log-loss includes 0 (N to N)

# The metric that selects the best epoch belongs to the task.
$ lapse train events.lapse -o m.safetensors --select ndcg@10
! lapse: the task classify has no validation metric 'ndcg@10'; --select takes log-loss or accuracy
= 2
$ lapse train events.lapse -o m.safetensors --select recall
! lapse: --select takes one of log-loss, accuracy, ndcg@10, hit@10, mrr, not 'recall'
! lapse: see `lapse train --help`
= 2

# A log of epochs: one line each, never twice, also after a run that was killed within a line.
$ lapse train events.lapse -o m.safetensors --epochs 3 --dims 8 --batch 4 --no-eval --log log.jsonl 2>/dev/null >&2; sed -E 's/: -?[0-9.e-]+/: N/g' log.jsonl
| {"epoch": N, "loss": N, "valid": {"log_loss": N, "accuracy": N}, "score": N, "best": true, "seconds": N}
| {"epoch": N, "loss": N, "valid": {"log_loss": N, "accuracy": N}, "score": N, "best": true, "seconds": N}
| {"epoch": N, "loss": N, "valid": {"log_loss": N, "accuracy": N}, "score": N, "best": true, "seconds": N}
$ lapse train events.lapse -o m.safetensors --epochs 2 --dims 8 --batch 4 --no-eval --log log.jsonl 2>/dev/null >&2; wc -l <log.jsonl
| 2
$ lapse train events.lapse -o stopped.safetensors --epochs 100000 --patience 100000 --dims 8 --log log.jsonl 2>log & \
  for i in $(seq 600); do grep -qs '"epoch": 3,' log.jsonl && break; sleep 0.05; done; kill -INT $!; wait $!; \
  printf '{"epoch": 9999' >>log.jsonl; lapse train --resume events.lapse -o stopped.safetensors --epochs 100000 --patience 100000 --dims 8 --log log.jsonl 2>log2 & \
  n=$(wc -l <log.jsonl); for i in $(seq 600); do [ $(wc -l <log.jsonl) -gt $((n + 2)) ] && break; sleep 0.05; done; kill -INT $!; wait $!; \
  sed -E 's/^\{"epoch": ([0-9]+),.*\}$/\1/' log.jsonl | awk '$1 != NR' | wc -l; rm stopped* log log2
| 0
$ echo hello >notes.txt; lapse train events.lapse -o m.safetensors --log notes.txt; cat notes.txt; rm notes.txt
| hello
! lapse: notes.txt: this file is not a log of epochs, and a log would overwrite it; set another --log FILE
$ lapse train events.lapse -o m.safetensors --log events.lapse
! lapse: --log events.lapse would overwrite DATA events.lapse
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --log m.safetensors
! lapse: --output m.safetensors and --log m.safetensors are the same file
! lapse: see `lapse train --help`
= 2
$ rm log.jsonl

# The settings of an earlier run; options beside it override them.
$ lapse train events.lapse -o first.safetensors --epochs 2 --dims 8 --batch 4 --seed 5 --select accuracy --threads 1 2>/dev/null >&2; \
  lapse train events.lapse -o second.safetensors --like first.safetensors --threads 2 2>/dev/null >&2; cmp first.safetensors second.safetensors && echo same
| same
$ lapse train events.lapse -o second.safetensors --like first.safetensors --model lstm --seed 6 --threads 1 --no-eval 2>&1 | sed -n '1,/^Run/p'
| Data      events.lapse: 96 events in 12 sequences, 4 event types
| Model     model lstm, size base, task classify, target-time known, context 8,
|           dims 8, dropout 0.3, gap-input on, when no, encoding mercer, periods
|           16, harmonics 5, period-min 4 minutes, period-max 2.66 days,
|           period-init geometric, periods-fixed no, layers 1
| Training  learning-rate 0.002, schedule constant, beta1 0.9, beta2 0.98, l2 0,
|           clip 5, ema-decay 0, batch 4, epochs 2, patience 10, select accuracy,
|           windows all
| Run       split-by sequence, seed 6, device cpu, threads 1, shards 16,
$ lapse train events.lapse -o second.safetensors --like markov.safetensors --threads 1 --no-eval 2>&1 | grep -v ^saved
| Data      events.lapse: 96 events in 12 sequences, 4 event types
| Model     model markov, task classify, target-time known, context 8, order 1
| Run       split-by sequence, seed 3, threads 1
$ lapse import fields.csv -o priced.lapse --event item --number price >/dev/null; lapse train priced.lapse -o first.safetensors --epochs 1 --dims 8 --threads 1 --no-eval 2>&1 | sed -n '/^Model/,/^Training/p' | grep -c field-dims; \
  lapse train events.lapse -o second.safetensors --like first.safetensors
| 0
! lapse: the model reads the field 'price' (number), and the dataset does not have it: import it with --number price
= 1
$ lapse train events.lapse -o second.safetensors --like events.lapse
! lapse: events.lapse: this is not a whole Lapse model: it does not begin with a safetensors header
= 1
$ rm first.safetensors second.safetensors priced.lapse
