# A network that learns when. Its numbers differ in the last digits between machines, so that their form is shown.
$ lapse import events.csv -o events.lapse >/dev/null
$ lapse train events.lapse -o m.safetensors --when --when-components 3 --epochs 2 --dims 8 --context 16 --periods 4 --harmonics 2 \
  --batch 4 --seed 3 --threads 1 --no-eval --checkpoint none 2>&1 | grep -c 'time-loss'
| 3
$ lapse train events.lapse -o scored.safetensors --when --epochs 1 --dims 4 --context 4 --periods 2 --threads 1 --checkpoint none 2>/dev/null | sed -n '/^next time/,$p' | cut -d' ' -f1
| next
|
| attention
| exponential
| log-normal
| log-normal-type
| gap-histogram
$ lapse info m.safetensors --json | grep -c '"when.mean"'
| 1
$ lapse eval m.safetensors events.lapse --bootstrap 0 | sed -n '/^next time/,$p' | sed -E 's/ +[0-9.]+( %)?/ N/g'
| next time    test: N events; NLL in nats per event, with times in minutes
|                     NLL  MAE of median  RMSE of mean   CRPS  within N  within N  within N  PIT distance
| attention N N N N N N N N
| exponential N N N N N N N N
| log-normal N N N N N N N N
| log-normal-type N N N N N N N N
| gap-histogram N N N N N N N N
$ lapse eval m.safetensors events.lapse --bootstrap 0 --json | sed -n '/"time"/,/"scores"/p' | sed -E 's/: [0-9.e-]+/: N/'
|   "time": {
|     "unit": "minute",
|     "unit_seconds": N,
|     "floor_seconds": N,
|     "cases": N,
|     "sequences": N,
|     "scores": [

# The time of the next event: from the last event, or from now.
$ lapse predict m.safetensors history.csv --when --now 2026-01-01 --within 1h,7d --top 1 | sed -E 's/2026-[0-9]{2}-[0-9T:.-]+Z/TIME/g; s/(buy|view|cart|rate)? +[0-9.]+ %/ N %/g'
| sequence  from                  median                mean N % N %                    alive  within 1h  of these    within 7d  of these
| max       TIME  TIME  TIME  TIME  TIME N % N %   N % N %   N %
| nora      TIME  TIME  TIME  TIME  TIME N % N %   N % N %   N %
$ lapse predict m.safetensors history.csv --when --now 2026-03-01 --csv | cut -d, -f1,2
| sequence,from
| max,2026-03-01T00:00:00Z
| nora,2026-03-01T00:00:00Z
$ lapse predict m.safetensors history.csv --when --json --within 2d | grep -c '"p50_days"'
| 2

# Futures: the same seed, the same bytes on any number of threads.
$ lapse forecast m.safetensors history.csv --horizon 30d --samples 20 --top 1 --threads 1 >one.txt
$ lapse forecast m.safetensors history.csv --horizon 30d --samples 20 --top 1 --threads 4 | cmp - one.txt
$ lapse forecast m.safetensors history.csv --horizon 30d --samples 20 --json --seed 2 | grep -c '"any"'
| 8

# --now is the same for both: by default the end of the data.
$ for verb in "predict --when" "forecast --horizon 1h --samples 2"; do for now in "" "--now end" "--now last" "--now 2026-03-01"; do \
  lapse ${verb%% *} m.safetensors history.csv ${verb#* } $now --csv | awk -F, '$2 != last { printf "%s ", last = $2 } END { print "" }'; done; done
| from 2026-02-02T09:15:00Z 
| from 2026-02-02T09:15:00Z 
| from 2026-02-01T10:30:00Z 2026-02-02T09:15:00Z 
| from 2026-03-01T00:00:00Z 
| from 2026-02-02T09:15:00Z 
| from 2026-02-02T09:15:00Z 
| from 2026-02-01T10:30:00Z 2026-02-02T09:15:00Z 
| from 2026-03-01T00:00:00Z 
$ lapse predict m.safetensors history.csv --within 1d --csv | head -1
| sequence,from,p10,p50,p90,p10_days,p50_days,p90_days,mean_days,alive,within_1d

# Some histories alone, from the end of all.
$ lapse predict m.safetensors history.csv --within 1d --csv >all.csv; lapse predict m.safetensors history.csv --within 1d --csv --only max | diff - <(grep -v nora all.csv)
$ lapse forecast m.safetensors history.csv --horizon 1d --samples 2 --top 1 --csv --only nora --only max | cut -d, -f1,2
| sequence,from
| nora,2026-02-02T09:15:00Z
| max,2026-02-02T09:15:00Z
$ lapse forecast m.safetensors history.csv --horizon 1d --only nobody
! lapse: history.csv has no history 'nobody'; the first is 'max'
= 1

# Forecasts as CSV, to a file.
$ lapse forecast m.safetensors history.csv --horizon 30d --samples 20 --top 1 --csv -o out.csv; cut -d, -f1-3,8,9 out.csv
| sequence,from,samples,rank,event
| max,2026-02-02T09:15:00Z,20,1,cart
| nora,2026-02-02T09:15:00Z,20,1,cart
$ sed 's/^max/=max/' history.csv >formulas.csv; lapse forecast m.safetensors formulas.csv --horizon 30d --samples 20 --top 1 --csv-safe | cut -d, -f1
| sequence
| '=max
| nora
$ lapse predict m.safetensors formulas.csv --when --csv-safe | cut -d, -f1
| sequence
| '=max
| nora
$ lapse forecast m.safetensors history.csv --horizon 30d --csv --json
! lapse: --json and --csv are mutually exclusive
! lapse: see `lapse forecast --help`
= 2
$ lapse forecast m.safetensors history.csv --horizon 30d -o m.safetensors
! lapse: --output m.safetensors would overwrite MODEL m.safetensors
! lapse: see `lapse forecast --help`
= 2

# The number of events is estimated first; a forecast that is stopped says so.
$ lapse forecast m.safetensors history.csv --horizon 900y 2>&1 | sed -E 's/[0-9,]+ events, .*;/N events, ...;/'
| lapse: the forecast would draw about N events, ...; the limit is 100,000,000. Give a shorter --horizon, fewer --samples, or a higher --max-events
$ lapse forecast m.safetensors history.csv --horizon 900y >/dev/null 2>&1
= 2
$ timeout --foreground --preserve-status -s INT 2 lapse forecast m.safetensors history.csv --horizon 20d --samples 1000000 --max-events 0 --threads 1 --top 1 >part.txt; \
  sed -n '3,$p' part.txt
| partial: stopped with all futures of 0 of 2 histories
! lapse: stopped with all futures of 0 of 2 histories; the result is partial, and says so
$ timeout --foreground --preserve-status -s INT 2 lapse forecast m.safetensors history.csv --horizon 9000d --samples 1000000 --max-events 0 --threads 1
! lapse: stopped with all futures of 0 of 2 histories; there is no result
= 130

# Returns: chances of an event within a horizon after an origin, beside baselines.
$ lapse eval m.safetensors events.lapse --within 1d,3d --now 2026-01-02 --split all --samples 2 --bootstrap 0 | sed -E 's/ +[0-9][0-9.,]*( %)?/ N/g'
| returns      all: N histories as of N-01-02T00:00:00Z; what they did later is held out
|
| within N day: N of N came back, N
|             Brier N interval  log-loss  mean chance
| attention N N N
| constant N N N
| logistic N N N
| bg/nbd N N N
|
| chances        histories  predicted  observed
| lowest fifth N N N
|  N N N
|  N N N
|  N N N
| highest fifth N N N
|
| within N days: N of N came back, N
|             Brier N interval  log-loss  mean chance
| attention N N N
| constant N N N
| logistic N N N
| bg/nbd N N N
|
| chances        histories  predicted  observed
| lowest fifth N N N
|  N N N
|  N N N
|  N N N
| highest fifth N N N
|
| events until  observed  attention  bg/nbd
| 7.2 hours N N N
| 14.4 hours N N N
| 21.6 hours N N N
| 1.2 days N N N
| 1.5 days N N N
| 1.8 days N N N
| 2.1 days N N N
| 2.4 days N N N
| 2.7 days N N N
| 3 days N N N
$ lapse eval m.safetensors events.lapse --within 1d --split all --samples 0 --bootstrap 9 --json | sed -E 's/: [0-9.e-]+(,?)$/: N\1/' | sed -n 1,16p
| {
|   "model": "m.safetensors",
|   "data": "events.lapse",
|   "split": "all",
|   "now": "2026-01-04T13:18:00Z",
|   "cases": N,
|   "within": [
|     {
|       "seconds": N,
|       "returned": N,
|       "scores": [
|         {
|           "name": "attention",
|           "brier": N,
|           "brier_low": N,
|           "brier_high": N,
$ lapse eval m.safetensors events.lapse --within 1d --now 2027-01-01 --split all
! lapse: the data ends on 2026-01-05T13:18:00Z, less than the longest --within after 2027-01-01T00:00:00Z: give a shorter one, or an earlier --now
= 2
$ lapse eval m.safetensors events.lapse --within 7
! lapse: --within 7: '7' is not a length of time: give a number and its unit, such as 250ms, 90s, 15m, 3h, 2d, 1w or 2y
! lapse: see `lapse eval --help`
= 2
$ lapse eval m.safetensors events.lapse --within 7d --now never
! lapse: --now never: 'never' is not a time: give unix seconds, or ISO 8601 such as 2026-11-15T12:00:00Z
! lapse: see `lapse eval --help`
= 2

# Mistakes.
$ lapse train events.lapse -o plain.safetensors --epochs 1 --dims 4 --context 4 --periods 2 --threads 1 --no-eval >/dev/null 2>&1
$ lapse predict plain.safetensors history.csv --when
! lapse: the model does not predict the time of the next event: train it with --when
= 2
$ lapse forecast plain.safetensors history.csv --horizon 1d
! lapse: the model does not predict the time of the next event: train it with --when
= 2
$ lapse predict m.safetensors history.csv --when --at +1d
! lapse: --when asks for the time of the next event, --at for the event at a time: use one of them
! lapse: see `lapse predict --help`
= 2
$ lapse predict m.safetensors history.csv --at +1d --within 1d
! lapse: --within asks for the time of the next event, --at for the event at a time: use one of them
! lapse: see `lapse predict --help`
= 2
$ lapse predict m.safetensors history.csv --when --within 7
! lapse: --within 7: '7' is not a length of time: give a number and its unit, such as 250ms, 90s, 15m, 3h, 2d, 1w or 2y
! lapse: see `lapse predict --help`
= 2
$ lapse predict m.safetensors history.csv --when --now yesterday
! lapse: --now yesterday: 'yesterday' is not a time: give unix seconds, or ISO 8601 such as 2026-11-15T12:00:00Z
! lapse: see `lapse predict --help`
= 2
$ lapse forecast m.safetensors history.csv --horizon -3d
! lapse: --horizon -3d: '-3d' is out of range: a length of time is 0 to 9999 years
! lapse: see `lapse forecast --help`
= 2
$ lapse forecast m.safetensors history.csv
! lapse: forecast needs --horizon DURATION: how far to look ahead, such as 30d
! lapse: see `lapse forecast --help`
= 2
$ lapse forecast m.safetensors history.csv --horizon 1d --samples 0
! lapse: 0 samples are not between 1 and 1,000,000
= 2
$ lapse train events.lapse -o n.safetensors --when --model markov
! lapse: the model 'markov' counts events and does not learn when: --when needs a network
= 2
$ lapse train events.lapse -o n.safetensors --when --model rmtpp
! lapse: the model 'rmtpp' predicts the time of the next event by itself: train it without --when
= 2
$ lapse train events.lapse -o n.safetensors --when --projection mlp
! lapse: the projection mlp sees all times from the end of the window, so that every event but the last would tell the times of later ones, which --when learns: use the projection linear or mlp-query
= 2
$ lapse train events.lapse -o n.safetensors --select joint-loss
! lapse: --select takes one of log-loss, accuracy, ndcg@10, hit@10, mrr, not 'joint-loss'
! lapse: see `lapse train --help`
= 2

# A run that is killed goes on where it was, in either network.
$ options="--when --dims 8 --context 16 --periods 4 --harmonics 2 --batch 2 --epochs 30 --patience 30 --seed 3 --threads 1 --no-eval --checkpoint-every 0s"; \
  lapse train events.lapse -o whole.safetensors $options >/dev/null 2>&1; \
  for line in '^epoch 8/' '^times: epoch 8/'; do \
    lapse train events.lapse -o part.safetensors $options >/dev/null 2>log & \
    for i in $(seq 1000); do grep -qs "$line" log && break; sleep 0.01; done; kill -KILL $!; wait $! 2>/dev/null; \
    ls part.safetensors.checkpoint; lapse train events.lapse -o part.safetensors --resume $options >/dev/null 2>&1; \
    cmp whole.safetensors part.safetensors && rm part.safetensors; done
| part.safetensors.checkpoint
| part.safetensors.checkpoint
# One meaning of --now and of the two names of a horizon.
$ for now in end 2026-01-02; do lapse eval m.safetensors events.lapse --within 1d --now $now --split all --samples 0 --bootstrap 0 | head -1; done
| returns      all: 12 histories as of 2026-01-04T13:18:00Z; what they did later is held out
| returns      all: 12 histories as of 2026-01-02T00:00:00Z; what they did later is held out
$ lapse eval m.safetensors events.lapse --within 1d --now last
! lapse: --now last leaves no later events to score against: use end, or a time
! lapse: see `lapse eval --help`
= 2
$ lapse forecast m.safetensors history.csv --within 1d --samples 2 --top 1 --csv | cmp - <(lapse forecast m.safetensors history.csv --horizon 1d --samples 2 --top 1 --csv)
$ lapse predict m.safetensors history.csv --when --horizon 1d --csv | head -1
| sequence,from,p10,p50,p90,p10_days,p50_days,p90_days,mean_days,alive,within_1d
# Without a terminal there is a line for each quarter of the epochs.
$ lapse train events.lapse -o q.safetensors --when --epochs 9 --dims 4 --context 4 --periods 2 --threads 1 --checkpoint none --no-eval 2>&1 >/dev/null | grep -o '.*epoch [0-9]*/9'
| epoch 3/9
| epoch 5/9
| epoch 7/9
| epoch 9/9
| times: epoch 3/9
| times: epoch 5/9
| times: epoch 7/9
| times: epoch 9/9
