# Baselines are counts, so the scores of a comparison are exact on every machine.
$ lapse import events.csv -o events.lapse >/dev/null
$ lapse compare events.lapse --models majority,markov --seeds 2 --grid order=1,2 --parallel 1 --no-times 2>/dev/null
| Split test, 6 events; mean (standard deviation) over 2 seeds.
| model     config          log-loss    accuracy, %   valid log-loss  minus the best  p
| majority           1.1932 (0.2357)  52.08 (20.62)  1.1092 (0.1169)         +0.4612  -
| markov *  order 2  0.7320 (0.3023)  60.42 (38.30)  0.7403 (0.1768)               -  -
|
| * best log-loss. Differences from it are paired by seed and sequence, with 95 % bootstrap intervals;
| p is two-sided. The config of a row is the one with the best mean validation score.
# The finished runs are kept: nothing is trained again.
$ ls events.lapse.runs | wc -l
| 7
$ lapse compare events.lapse --models majority,markov --seeds 2 --grid order=1,2 --no-times --cells
| Split test, 6 events; mean (standard deviation) over 2 seeds.
| model     config          log-loss    accuracy, %   valid log-loss  minus the best  p
| majority           1.1932 (0.2357)  52.08 (20.62)  1.1092 (0.1169)         +0.4612  -
| markov *  order 2  0.7320 (0.3023)  60.42 (38.30)  0.7403 (0.1768)               -  -
|
| * best log-loss. Differences from it are paired by seed and sequence, with 95 % bootstrap intervals;
| p is two-sided. The config of a row is the one with the best mean validation score.
|
| model       config    valid log-loss
| majority *           1.1092 (0.1169)
| markov      order 1  0.7737 (0.1570)
| markov *    order 2  0.7403 (0.1768)
$ lapse compare events.lapse --models majority,markov --seeds 2 --grid order=1,2 --no-times --test-scores --format csv
| model,config,chosen,best,runs,diverged,valid,valid_std,log-loss,log-loss_std,accuracy,accuracy_std,difference,difference_low,difference_high,p,epochs
| majority,,1,0,2,0,1.10920105,0.116931241,1.19318447,0.235701735,0.520833333,0.206239478,0.461158292,,,,
| markov,order 1,0,0,2,0,0.773703197,0.157003971,0.760128311,0.216346041,0.541666667,0.294627825,,,,,
| markov,order 2,1,1,2,0,0.740348485,0.176826697,0.73202618,0.302250965,0.604166667,0.383016173,,,,,
# One run is missing: it alone is trained, and the table is the same.
$ lapse compare events.lapse --models majority,markov --seeds 2 --grid order=1,2 --no-times >whole; \
  rm "$(ls events.lapse.runs/*.json | head -n 1)"; \
  lapse compare events.lapse --models majority,markov --seeds 2 --grid order=1,2 --no-times >again 2>note; \
  cmp whole again && grep -c finished note
| 1
# A file with the whole comparison; the command line overrides it.
$ lapse compare plan.json --no-times --format markdown -o table.md 2>/dev/null && cat table.md && ls table.md.runs | wc -l
| ### Baselines
|
| Split test, 8 events; mean (standard deviation) over 2 seeds.
|
| | model | config | log-loss | accuracy, % | valid log-loss | minus the best | p |
| |---|---|---:|---:|---:|---:|---:|
| | majority |  | 1.3446 (0.0387) | 40.18 (3.79) | 1.3834 (0.0161) | +0.8692 | - |
| | markov | order 1 | 0.6218 (0.0197) | 66.07 (12.63) | 0.6164 (0.0339) | +0.1464 | - |
| | markov, order 3 * |  | 0.4754 (0.0426) | 73.21 (2.53) | 0.5983 (0.1574) | - | - |
|
| \* best log-loss. Differences from it are paired by seed and sequence, with 95 % bootstrap intervals; p is two-sided. The config of a row is the one with the best mean validation score.
| 9
$ lapse compare plan.json --no-times --format json --seeds 3..3 --keep none --metric accuracy --cells 2>/dev/null
| {
|   "title": "Baselines",
|   "data": "events.lapse",
|   "split": "test",
|   "target": "event",
|   "metric": "accuracy",
|   "select": "log-loss",
|   "runs": 4,
|   "finished": 4,
|   "rows": [
|     {
|       "name": "majority",
|       "config": "",
|       "runs": 1,
|       "diverged": 0,
|       "valid": {
|         "mean": 1.37200106,
|         "std": 0
|       },
|       "log-loss": {
|         "mean": 1.37200106,
|         "std": 0
|       },
|       "accuracy": {
|         "mean": 0.375,
|         "std": 0
|       },
|       "best": false,
|       "cases": 8,
|       "parameters": 0,
|       "difference": {
|         "mean": -0.375,
|         "low": null,
|         "high": null,
|         "p": null
|       },
|       "epochs": null,
|       "reached": 0,
|       "seeds": [
|         {
|           "seed": 3,
|           "valid": 1.37200106,
|           "log-loss": 1.37200106,
|           "accuracy": 0.375,
|           "epochs": 0,
|           "best_epoch": 0,
|           "curve": []
|         }
|       ]
|     },
|     {
|       "name": "markov",
|       "config": "order 2",
|       "runs": 1,
|       "diverged": 0,
|       "valid": {
|         "mean": 0.571688883,
|         "std": 0
|       },
|       "log-loss": {
|         "mean": 0.497315262,
|         "std": 0
|       },
|       "accuracy": {
|         "mean": 0.75,
|         "std": 0
|       },
|       "best": true,
|       "cases": 8,
|       "parameters": 0,
|       "difference": {
|         "mean": null,
|         "low": null,
|         "high": null,
|         "p": null
|       },
|       "epochs": null,
|       "reached": 0,
|       "seeds": [
|         {
|           "seed": 3,
|           "valid": 0.571688883,
|           "log-loss": 0.497315262,
|           "accuracy": 0.75,
|           "epochs": 0,
|           "best_epoch": 0,
|           "curve": []
|         }
|       ]
|     },
|     {
|       "name": "markov, order 3",
|       "config": "",
|       "runs": 1,
|       "diverged": 0,
|       "valid": {
|         "mean": 0.48704901,
|         "std": 0
|       },
|       "log-loss": {
|         "mean": 0.445281613,
|         "std": 0
|       },
|       "accuracy": {
|         "mean": 0.75,
|         "std": 0
|       },
|       "best": false,
|       "cases": 8,
|       "parameters": 0,
|       "difference": {
|         "mean": 0,
|         "low": null,
|         "high": null,
|         "p": null
|       },
|       "epochs": null,
|       "reached": 0,
|       "seeds": [
|         {
|           "seed": 3,
|           "valid": 0.48704901,
|           "log-loss": 0.445281613,
|           "accuracy": 0.75,
|           "epochs": 0,
|           "best_epoch": 0,
|           "curve": []
|         }
|       ]
|     }
|   ],
|   "cells": [
|     {
|       "name": "majority",
|       "config": "",
|       "runs": 1,
|       "diverged": 0,
|       "valid": {
|         "mean": 1.37200106,
|         "std": 0
|       },
|       "log-loss": {
|         "mean": 1.37200106,
|         "std": 0
|       },
|       "accuracy": {
|         "mean": 0.375,
|         "std": 0
|       },
|       "chosen": true
|     },
|     {
|       "name": "markov",
|       "config": "order 1",
|       "runs": 1,
|       "diverged": 0,
|       "valid": {
|         "mean": 0.640293974,
|         "std": 0
|       },
|       "chosen": false
|     },
|     {
|       "name": "markov",
|       "config": "order 2",
|       "runs": 1,
|       "diverged": 0,
|       "valid": {
|         "mean": 0.571688883,
|         "std": 0
|       },
|       "log-loss": {
|         "mean": 0.497315262,
|         "std": 0
|       },
|       "accuracy": {
|         "mean": 0.75,
|         "std": 0
|       },
|       "chosen": true
|     },
|     {
|       "name": "markov, order 3",
|       "config": "",
|       "runs": 1,
|       "diverged": 0,
|       "valid": {
|         "mean": 0.48704901,
|         "std": 0
|       },
|       "log-loss": {
|         "mean": 0.445281613,
|         "std": 0
|       },
|       "accuracy": {
|         "mean": 0.75,
|         "std": 0
|       },
|       "chosen": true
|     }
|   ]
| }
# Recommenders have ranking metrics.
$ lapse import repeats.csv -o items.lapse >/dev/null 2>&1
$ lapse compare items.lapse --task recommend --models popularity,recency --protocol full --seeds 1 --keep none --no-times 2>/dev/null
| Split test, 1 event, protocol full; mean over 1 seed.
| model         ndcg@10  hit@10     mrr  valid ndcg@10  minus the best  p
| popularity *   0.3869  1.0000  0.2000         1.0000               -  -
| recency        0.3869  1.0000  0.2000         1.0000         +0.0000  -
|
| * best ndcg@10. Differences from it are paired by seed and sequence, with 95 % bootstrap intervals;
| p is two-sided.
# A figure of the learning curves.
$ lapse compare events.lapse --seeds 2 --epochs 2 --dims 4 --blocks 1 --keep none --curves curves.svg >/dev/null 2>&1 && \
  grep -c '<path' curves.svg
| 2
$ lapse compare events.lapse --models majority --seeds 1 --keep none --no-times --curves curves.svg 2>&1 >/dev/null | tail -n 1
| lapse: there are no learning curves: no network has finished an epoch
# Wrong usage.
$ lapse compare events.lapse --models nothing
! lapse: --model takes one of attention, sasrec, lstm, gru4rec, rnn-attention, caser, transrec, rmtpp, timejoint, markov, item-markov, recency, popularity, majority, not 'nothing'
= 2
$ lapse compare events.lapse --grid nothing=1
! lapse: there is no training option 'nothing' for a grid
= 2
$ echo '{"data": "events.lapse", "seed": 3}' >wrong.json; lapse compare wrong.json
! lapse: wrong.json:1: 'seed' is a training option; these are members of "options"
= 1
$ echo '{"seeds": 3}' >nodata.json; lapse compare nodata.json
! lapse: nodata.json: the comparison names no data; add "data": "FILE", or use --data FILE
= 1
$ echo '{' >broken.json; lapse compare broken.json
! lapse: broken.json:2: the text is not valid JSON
= 1
$ truncate -s 10 events.lapse.runs/*.json; lapse compare events.lapse --models majority --seeds 1 2>&1 | sed 's/[0-9a-f]\{16\}/HASH/'
| lapse: events.lapse.runs/HASH.json: the file is not a whole record of a run; delete it to train the run again
# A search within a budget: the first trial has the options as given.
$ lapse tune events.lapse -o best.safetensors --model markov --trials 3 --parallel 1 2>/dev/null
| saved        best.safetensors after N s: trial 2 of 3
| best         order 2: log-loss 0.865384
| first        options as given: log-loss 0.884722
$ lapse info best.safetensors | grep tune
| tune.trials   3
| tune.budget   600
| tune.best     2
| tune.trial.1  options as given: log-loss 0.884722
| tune.trial.2  order 2: log-loss 0.865384
| tune.trial.3  order 3: log-loss 0.947586
$ lapse tune events.lapse -o - --model markov
! lapse: a model goes to a file, not to standard output
! lapse: see `lapse tune --help`
= 2
$ lapse tune events.lapse -o best.safetensors --budget 0s
! lapse: a search needs a budget above 0 seconds, and numbers of trials and of parallel trials (at most 256) that are not negative
= 2
