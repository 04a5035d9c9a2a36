# Whole searches and comparisons of small models with every digit.
$ lapse simulate -o shop.csv --sequences 36 --days 60 --seed 3 && lapse import shop.csv -o shop.lapse --event action,item --action action --field category >/dev/null
| wrote      648 events to shop.csv in N s
$ lapse tune shop.lapse -o best.st --trials 14 --parallel 1 --epochs 4 --threads 1 --keep kept --json 2>/dev/null
| {
|   "data": "shop.lapse",
|   "output": "best.st",
|   "seconds": N,
|   "metric": "log-loss",
|   "first": 2.63298875,
|   "best": 1.67783859,
|   "best_trial": 14,
|   "trials": [
|     "options as given: log-loss 2.63299 in epoch 4 of 4",
|     "l2 1e-06: log-loss 2.61547 in epoch 4 of 4",
|     "learning-rate 0.0014, l2 1e-06: log-loss 2.87808 in epoch 1 of 4",
|     "encoding bochner, heads 4: log-loss 2.88021 in epoch 3 of 3, stopped",
|     "learning-rate 0.0028, beta2 0.999: log-loss 2.39171 in epoch 4 of 4",
|     "context 100, learning-rate 0.0056, beta2 0.999: log-loss 2.33728 in epoch 4 of 4",
|     "context 100, blocks 1, heads 4, learning-rate 0.0056, beta2 0.999: log-loss 2.13417 in epoch 4 of 4",
|     "beta2 0.99: log-loss 2.99127 in epoch 1 of 2, stopped",
|     "context 100, periods 8, blocks 1, heads 4, learning-rate 0.0056, beta2 0.999: log-loss 2.91891 in epoch 2 of 2, stopped",
|     "context 100, encoding bochner, blocks 1, heads 4, learning-rate 0.0056, beta2 0.999: log-loss 2.0475 in epoch 4 of 4",
|     "encoding bochner, blocks 3: log-loss 2.51701 in epoch 4 of 4, stopped",
|     "context 200, encoding bochner, blocks 1, heads 4, learning-rate 0.0056, beta2 0.999, batch 16: log-loss 2.94786 in epoch 2 of 2, stopped",
|     "context 100, encoding bochner, blocks 1, heads 4, learning-rate 0.0078, beta2 0.999: log-loss 2.04981 in epoch 4 of 4",
|     "context 100, encoding bochner, blocks 1, heads 8, learning-rate 0.0056, beta2 0.999, batch 4: log-loss 1.67784 in epoch 4 of 4"
|   ]
| }
$ lapse info best.st | grep -E '^(tune|encoding|dims|batch|learning)'
| tune.trials    14
| tune.budget    600
| tune.best      14
| tune.trial.1   options as given: log-loss 2.63299 in epoch 4 of 4
| tune.trial.2   l2 1e-06: log-loss 2.61547 in epoch 4 of 4
| tune.trial.3   learning-rate 0.0014, l2 1e-06: log-loss 2.87808 in epoch 1 of 4
| tune.trial.4   encoding bochner, heads 4: log-loss 2.88021 in epoch 3 of 3, stopped
| tune.trial.5   learning-rate 0.0028, beta2 0.999: log-loss 2.39171 in epoch 4 of 4
| tune.trial.6   context 100, learning-rate 0.0056, beta2 0.999: log-loss 2.33728 in epoch 4 of 4
| tune.trial.7   context 100, blocks 1, heads 4, learning-rate 0.0056, beta2 0.999: log-loss 2.13417 in epoch 4 of 4
| tune.trial.8   beta2 0.99: log-loss 2.99127 in epoch 1 of 2, stopped
| tune.trial.9   context 100, periods 8, blocks 1, heads 4, learning-rate 0.0056, beta2 0.999: log-loss 2.91891 in epoch 2 of 2, stopped
| tune.trial.10  context 100, encoding bochner, blocks 1, heads 4, learning-rate 0.0056, beta2 0.999: log-loss 2.0475 in epoch 4 of 4
| tune.trial.11  encoding bochner, blocks 3: log-loss 2.51701 in epoch 4 of 4, stopped
| tune.trial.12  context 200, encoding bochner, blocks 1, heads 4, learning-rate 0.0056, beta2 0.999, batch 16: log-loss 2.94786 in epoch 2 of 2, stopped
| tune.trial.13  context 100, encoding bochner, blocks 1, heads 4, learning-rate 0.0078, beta2 0.999: log-loss 2.04981 in epoch 4 of 4
| tune.trial.14  context 100, encoding bochner, blocks 1, heads 8, learning-rate 0.0056, beta2 0.999, batch 4: log-loss 1.67784 in epoch 4 of 4
$ grep -h '"key"' kept/*.json | sed 's/commit=[^\]*/C/g'
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000al2=1e-06\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000alearning-rate=0.0014\u000al2=1e-06\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000aencoding=bochner\u000aheads=4\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000alearning-rate=0.0028\u000abeta2=0.999\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000acontext=100\u000alearning-rate=0.0056\u000abeta2=0.999\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000acontext=100\u000ablocks=1\u000aheads=4\u000alearning-rate=0.0056\u000abeta2=0.999\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000abeta2=0.99\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000acontext=100\u000aperiods=8\u000ablocks=1\u000aheads=4\u000alearning-rate=0.0056\u000abeta2=0.999\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000acontext=100\u000aencoding=bochner\u000ablocks=1\u000aheads=4\u000alearning-rate=0.0056\u000abeta2=0.999\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000aencoding=bochner\u000ablocks=3\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000acontext=200\u000aencoding=bochner\u000ablocks=1\u000aheads=4\u000alearning-rate=0.0056\u000abeta2=0.999\u000abatch=16\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000acontext=100\u000aencoding=bochner\u000ablocks=1\u000aheads=4\u000alearning-rate=0.0078\u000abeta2=0.999\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000acontext=100\u000aencoding=bochner\u000ablocks=1\u000aheads=8\u000alearning-rate=0.0056\u000abeta2=0.999\u000abatch=4\u000a",
# The same search again: all of its trials are kept.
$ lapse tune shop.lapse -o again.st --trials 14 --parallel 1 --epochs 4 --threads 1 --keep kept --json 2>/dev/null | grep -E '"(best|first)'
|   "first": 2.63298875,
|   "best": 1.67783859,
|   "best_trial": 14,
$ lapse tune shop.lapse -o lstm.st --model lstm --when --dims 6 --trials 6 --seed 2 --parallel 1 --epochs 2 --threads 1 --json 2>/dev/null | sed -n '/trials/,$p'
|   "trials": [
|     "options as given: log-loss 2.7 in epoch 2 of 2",
|     "learning-rate 0.001, batch 16: log-loss 2.71855 in epoch 2 of 2",
|     "encoding bochner: log-loss 2.76221 in epoch 2 of 2",
|     "dropout 0.35, batch 4: log-loss 2.6871 in epoch 2 of 2",
|     "l2 1e-05, batch 16: log-loss 2.7188 in epoch 1 of 1, stopped",
|     "context 100, dropout 0.35, learning-rate 0.004, batch 4: log-loss 2.64363 in epoch 2 of 2"
|   ]
| }
$ lapse simulate --preset catalogue --items 200 --sequences 80 --days 300 --seed 5 -o items.csv && lapse import items.csv -o items.lapse --event item --field category >/dev/null
| wrote      1,220 events to items.csv in N s
$ lapse tune items.lapse -o items.st --task recommend --context 20 --trials 12 --seed 4 --parallel 1 --epochs 2 --threads 1 --json 2>/dev/null | sed -n '/trials/,$p'
|   "trials": [
|     "options as given: ndcg@10 0.302236 in epoch 2 of 2",
|     "gap-input off: ndcg@10 0.329737 in epoch 2 of 2",
|     "dropout 0.25, heads 4: ndcg@10 0.318604 in epoch 2 of 2",
|     "dropout 0.35, gap-input off: ndcg@10 0.329212 in epoch 2 of 2",
|     "dropout 0.35: ndcg@10 0.284904 in epoch 1 of 1, stopped",
|     "gap-input off, blocks 1, l2 1e-07: ndcg@10 0.3451 in epoch 2 of 2",
|     "dropout 0.4, gap-input off, blocks 1, l2 1e-07: ndcg@10 0.340981 in epoch 2 of 2",
|     "dropout 0.2, gap-input off, blocks 1, l2 1e-07: ndcg@10 0.334447 in epoch 1 of 2",
|     "dims 32, gap-input off, blocks 1, learning-rate 0.004, l2 1e-07: ndcg@10 0.378475 in epoch 2 of 2",
|     "encoding bochner: ndcg@10 0.278326 in epoch 1 of 1, stopped",
|     "batch 16: ndcg@10 0.301537 in epoch 1 of 1, stopped",
|     "dims 32, gap-input off, blocks 1, heads 4, learning-rate 0.004, beta2 0.99, l2 1e-07: ndcg@10 0.378035 in epoch 2 of 2"
|   ]
| }
$ lapse tune items.lapse -o items.st --task recommend --model transrec --trials 8 --parallel 1 --epochs 2 --threads 1 --json 2>/dev/null | sed -n '/trials/,$p'
|   "trials": [
|     "options as given: ndcg@10 0.254935 in epoch 2 of 2",
|     "l2 1e-06: ndcg@10 0.254935 in epoch 2 of 2",
|     "learning-rate 0.0014: ndcg@10 0.216102 in epoch 2 of 2",
|     "encoding mercer, batch 16: ndcg@10 0.229606 in epoch 2 of 2, stopped",
|     "dropout 0.35, beta2 0.999: ndcg@10 0.254004 in epoch 2 of 2",
|     "gap-input on, learning-rate 0.004: ndcg@10 0.284581 in epoch 2 of 2",
|     "gap-input on, learning-rate 0.004, batch 16: ndcg@10 0.282959 in epoch 2 of 2",
|     "beta2 0.99: ndcg@10 0.254935 in epoch 2 of 2"
|   ]
| }
$ lapse compare shop.lapse --models attention,lstm,markov --encodings mercer,none --seeds 2..3 --grid dims=4,6 --epochs 2 --blocks 1 --keep runs --parallel 1 --threads 1 \
    --format json 2>/dev/null | sed -E '/seconds/d'
| {
|   "data": "shop.lapse",
|   "split": "test",
|   "target": "event",
|   "metric": "log-loss",
|   "select": "log-loss",
|   "runs": 18,
|   "finished": 18,
|   "rows": [
|     {
|       "name": "attention, mercer",
|       "config": "dims 6",
|       "runs": 2,
|       "diverged": 0,
|       "valid": {
|         "mean": 2.95711974,
|         "std": 0.0622572831
|       },
|       "log-loss": {
|         "mean": 2.79728817,
|         "std": 0.192007469
|       },
|       "accuracy": {
|         "mean": 0.0612765957,
|         "std": 0.0264788922
|       },
|       "best": false,
|       "cases": 47,
|       "parameters": 3856,
|       "difference": {
|         "mean": 0.720144181,
|         "low": null,
|         "high": null,
|         "p": null
|       },
|       "epochs": 2,
|       "reached": 0,
|       "seeds": [
|         {
|           "seed": 2,
|           "valid": 2.91309719,
|           "log-loss": 2.93305796,
|           "accuracy": 0.0425531915,
|           "epochs": 2,
|           "best_epoch": 2,
|         },
|         {
|           "seed": 3,
|           "valid": 3.00114229,
|           "log-loss": 2.66151839,
|           "accuracy": 0.08,
|           "epochs": 2,
|           "best_epoch": 2,
|         }
|       ]
|     },
|     {
|       "name": "attention, none",
|       "config": "dims 4",
|       "runs": 2,
|       "diverged": 0,
|       "valid": {
|         "mean": 2.82115517,
|         "std": 0.18097073
|       },
|       "log-loss": {
|         "mean": 2.99320859,
|         "std": 0.0922703741
|       },
|       "accuracy": {
|         "mean": 0.0625531915,
|         "std": 0.0318950293
|       },
|       "best": false,
|       "cases": 47,
|       "parameters": 464,
|       "difference": {
|         "mean": 0.916064597,
|         "low": null,
|         "high": null,
|         "p": null
|       },
|       "epochs": 2,
|       "reached": 0,
|       "seeds": [
|         {
|           "seed": 2,
|           "valid": 2.9491208,
|           "log-loss": 2.92796358,
|           "accuracy": 0.085106383,
|           "epochs": 2,
|           "best_epoch": 2,
|         },
|         {
|           "seed": 3,
|           "valid": 2.69318954,
|           "log-loss": 3.0584536,
|           "accuracy": 0.04,
|           "epochs": 2,
|           "best_epoch": 2,
|         }
|       ]
|     },
|     {
|       "name": "lstm, mercer",
|       "config": "dims 6",
|       "runs": 2,
|       "diverged": 0,
|       "valid": {
|         "mean": 2.69202557,
|         "std": 0.103778469
|       },
|       "log-loss": {
|         "mean": 2.77803672,
|         "std": 0.0583033463
|       },
|       "accuracy": {
|         "mean": 0.0706382979,
|         "std": 0.0698079886
|       },
|       "best": false,
|       "cases": 47,
|       "parameters": 1984,
|       "difference": {
|         "mean": 0.700892724,
|         "low": null,
|         "high": null,
|         "p": null
|       },
|       "epochs": 2,
|       "reached": 0,
|       "seeds": [
|         {
|           "seed": 2,
|           "valid": 2.61864311,
|           "log-loss": 2.81926341,
|           "accuracy": 0.0212765957,
|           "epochs": 2,
|           "best_epoch": 2,
|         },
|         {
|           "seed": 3,
|           "valid": 2.76540803,
|           "log-loss": 2.73681002,
|           "accuracy": 0.12,
|           "epochs": 2,
|           "best_epoch": 2,
|         }
|       ]
|     },
|     {
|       "name": "lstm, none",
|       "config": "dims 6",
|       "runs": 2,
|       "diverged": 0,
|       "valid": {
|         "mean": 2.79266388,
|         "std": 0.131040352
|       },
|       "log-loss": {
|         "mean": 2.79307651,
|         "std": 0.011343997
|       },
|       "accuracy": {
|         "mean": 0.0306382979,
|         "std": 0.0132394461
|       },
|       "best": false,
|       "cases": 47,
|       "parameters": 736,
|       "difference": {
|         "mean": 0.715932515,
|         "low": null,
|         "high": null,
|         "p": null
|       },
|       "epochs": 2,
|       "reached": 0,
|       "seeds": [
|         {
|           "seed": 2,
|           "valid": 2.70000436,
|           "log-loss": 2.78505509,
|           "accuracy": 0.0212765957,
|           "epochs": 2,
|           "best_epoch": 2,
|         },
|         {
|           "seed": 3,
|           "valid": 2.88532341,
|           "log-loss": 2.80109792,
|           "accuracy": 0.04,
|           "epochs": 2,
|           "best_epoch": 2,
|         }
|       ]
|     },
|     {
|       "name": "markov",
|       "config": "",
|       "runs": 2,
|       "diverged": 0,
|       "valid": {
|         "mean": 1.90820108,
|         "std": 0.301932272
|       },
|       "log-loss": {
|         "mean": 2.07714399,
|         "std": 0.380925929
|       },
|       "accuracy": {
|         "mean": 0.275744681,
|         "std": 0.119155015
|       },
|       "best": true,
|       "cases": 47,
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
|           "seed": 2,
|           "valid": 1.69470272,
|           "log-loss": 2.3464993,
|           "accuracy": 0.191489362,
|           "epochs": 0,
|           "best_epoch": 0,
|           "curve": []
|         },
|         {
|           "seed": 3,
|           "valid": 2.12169943,
|           "log-loss": 1.80778868,
|           "accuracy": 0.36,
|           "epochs": 0,
|           "best_epoch": 0,
|           "curve": []
|         }
|       ]
|     }
|   ]
| }
$ for format in text markdown csv; do lapse compare shop.lapse --models attention,lstm,markov --encodings mercer,none --seeds 2..3 --grid dims=4,6 --epochs 2 --blocks 1 --keep runs \
    --parallel 1 --threads 1 --format $format --cells 2>/dev/null | sed -E 's/ +/ /g; s/[0-9.]+ (s|ms)\b/N s/g; s/^("?(att|lst|mark).*,.*)(,[^,]*){3}$/\1/'; done
| Split test, 47 events; mean (standard deviation) over 2 seeds.
| model config log-loss accuracy, % valid log-loss epoch training minus the best p
| attention, mercer dims 6 2.7973 (0.1920) 6.13 (2.65) 2.9571 (0.0623) N s N s +0.7201 -
| attention, none dims 4 2.9932 (0.0923) 6.26 (3.19) 2.8212 (0.1810) N s N s +0.9161 -
| lstm, mercer dims 6 2.7780 (0.0583) 7.06 (6.98) 2.6920 (0.1038) N s N s +0.7009 -
| lstm, none dims 6 2.7931 (0.0113) 3.06 (1.32) 2.7927 (0.1310) N s N s +0.7159 -
| markov * 2.0771 (0.3809) 27.57 (11.92) 1.9082 (0.3019) - N s - -
|
| * best log-loss. Differences from it are paired by seed and sequence, with 95 % bootstrap intervals;
| p is two-sided. The config of a row is the one with the best mean validation score.
|
| model config valid log-loss
| attention, mercer dims 4 3.0338 (0.2125)
| attention, mercer * dims 6 2.9571 (0.0623)
| attention, none * dims 4 2.8212 (0.1810)
| attention, none dims 6 2.8733 (0.0266)
| lstm, mercer dims 4 2.7406 (0.0068)
| lstm, mercer * dims 6 2.6920 (0.1038)
| lstm, none dims 4 2.8200 (0.1371)
| lstm, none * dims 6 2.7927 (0.1310)
| markov * 1.9082 (0.3019)
| Split test, 47 events; mean (standard deviation) over 2 seeds.
|
| | model | config | log-loss | accuracy, % | valid log-loss | epoch | training | minus the best | p |
| |---|---|---:|---:|---:|---:|---:|---:|---:|
| | attention, mercer | dims 6 | 2.7973 (0.1920) | 6.13 (2.65) | 2.9571 (0.0623) | N s | N s | +0.7201 | - |
| | attention, none | dims 4 | 2.9932 (0.0923) | 6.26 (3.19) | 2.8212 (0.1810) | N s | N s | +0.9161 | - |
| | lstm, mercer | dims 6 | 2.7780 (0.0583) | 7.06 (6.98) | 2.6920 (0.1038) | N s | N s | +0.7009 | - |
| | lstm, none | dims 6 | 2.7931 (0.0113) | 3.06 (1.32) | 2.7927 (0.1310) | N s | N s | +0.7159 | - |
| | markov * | | 2.0771 (0.3809) | 27.57 (11.92) | 1.9082 (0.3019) | - | N s | - | - |
|
| \* best log-loss. Differences from it are paired by seed and sequence, with 95 % bootstrap intervals; p is two-sided. The config of a row is the one with the best mean validation score.
|
| | model | config | valid log-loss |
| |---|---|---:|
| | attention, mercer | dims 4 | 3.0338 (0.2125) |
| | attention, mercer * | dims 6 | 2.9571 (0.0623) |
| | attention, none * | dims 4 | 2.8212 (0.1810) |
| | attention, none | dims 6 | 2.8733 (0.0266) |
| | lstm, mercer | dims 4 | 2.7406 (0.0068) |
| | lstm, mercer * | dims 6 | 2.6920 (0.1038) |
| | lstm, none | dims 4 | 2.8200 (0.1371) |
| | lstm, none * | dims 6 | 2.7927 (0.1310) |
| | markov * | | 1.9082 (0.3019) |
| model,config,chosen,best,runs,diverged,valid,valid_std,log-loss,log-loss_std,accuracy,accuracy_std,difference,difference_low,difference_high,p,epochs,epoch_seconds,seconds,reach_seconds
| "attention, mercer",dims 4,0,0,2,0,3.03376184,0.212502064,,,,,,,,,2
| "attention, mercer",dims 6,1,0,2,0,2.95711974,0.0622572831,2.79728817,0.192007469,0.0612765957,0.0264788922,0.720144181,,,,2
| "attention, none",dims 4,1,0,2,0,2.82115517,0.18097073,2.99320859,0.0922703741,0.0625531915,0.0318950293,0.916064597,,,,2
| "attention, none",dims 6,0,0,2,0,2.87334896,0.0265961786,,,,,,,,,2
| "lstm, mercer",dims 4,0,0,2,0,2.74063958,0.00678833013,,,,,,,,,2
| "lstm, mercer",dims 6,1,0,2,0,2.69202557,0.103778469,2.77803672,0.0583033463,0.0706382979,0.0698079886,0.700892724,,,,2
| "lstm, none",dims 4,0,0,2,0,2.82002885,0.137093011,,,,,,,,,2
| "lstm, none",dims 6,1,0,2,0,2.79266388,0.131040352,2.79307651,0.011343997,0.0306382979,0.0132394461,0.715932515,,,,2
| markov,,1,1,2,0,1.90820108,0.301932272,2.07714399,0.380925929,0.275744681,0.119155015,,,,,
$ lapse compare items.lapse --task recommend --models sasrec,item-markov,popularity --seeds 2 --dims 4 --epochs 1 --protocol uniform --keep none --parallel 1 --threads 1 --format csv 2>/dev/null | sed -E 's/(,[^,]*){3}$//'
| model,config,chosen,best,runs,diverged,valid,valid_std,ndcg@10,ndcg@10_std,hit@10,hit@10_std,mrr,mrr_std,difference,difference_low,difference_high,p,epochs
| sasrec,,1,0,2,0,0.123071537,0.0755768259,0.131335865,0.022271479,0.23125,0.0441941738,0.123718639,0.0147374249,-0.199734244,-0.287610606,-0.112664787,0.00099950025,1
| item-markov,,1,1,2,0,0.321108544,0,0.331070109,0,0.525,0,0.284994334,0,,,,,
| popularity,,1,0,2,0,0.202843145,0,0.257344577,0,0.45,0,0.216505259,0,-0.0737255319,-0.150410839,-0.000834175753,0.047976012,
