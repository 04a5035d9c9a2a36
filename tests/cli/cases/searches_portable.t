# Whole searches and comparisons of small models with every digit.
$ lapse simulate -o shop.csv --sequences 36 --days 60 --seed 3 && lapse import shop.csv -o shop.lapse --event action,item --action action --field category >/dev/null
| wrote      648 events to shop.csv in N s
$ lapse tune shop.lapse -o best.st --trials 14 --parallel 1 --epochs 4 --threads 1 --keep kept --json 2>/dev/null
| {
|   "data": "shop.lapse",
|   "output": "best.st",
|   "seconds": N,
|   "metric": "log-loss",
|   "first": 2.80805531,
|   "best": 2.69056027,
|   "best_trial": 14,
|   "trials": [
|     "options as given: log-loss 2.80806 in epoch 1 of 4",
|     "l2 1e-06: log-loss 2.80806 in epoch 1 of 4",
|     "learning-rate 0.0007: log-loss 2.80306 in epoch 1 of 4",
|     "encoding bochner, heads 4: log-loss 2.88307 in epoch 1 of 1, stopped",
|     "learning-rate 0.0014, beta2 0.999: log-loss 2.83175 in epoch 1 of 1, stopped",
|     "context 100, learning-rate 0.0014: log-loss 2.81053 in epoch 1 of 1, stopped",
|     "blocks 1, heads 4, learning-rate 0.0007: log-loss 2.7147 in epoch 3 of 4",
|     "beta2 0.99: log-loss 2.80819 in epoch 1 of 1, stopped",
|     "periods 8, blocks 1, heads 4, learning-rate 0.0007: log-loss 2.69937 in epoch 4 of 4",
|     "encoding bochner, periods 8, blocks 1, heads 4, learning-rate 0.0007: log-loss 2.90629 in epoch 1 of 1, stopped",
|     "encoding bochner, blocks 3: log-loss 2.77772 in epoch 2 of 4",
|     "context 100, periods 8, blocks 1, heads 4, learning-rate 0.0007, batch 32: log-loss 2.72369 in epoch 4 of 4",
|     "periods 8, blocks 1, heads 4, learning-rate 0.00098: log-loss 2.69625 in epoch 3 of 4",
|     "periods 8, blocks 1, heads 8, learning-rate 0.00098, batch 8: log-loss 2.69056 in epoch 2 of 4"
|   ]
| }
$ lapse info best.st | grep -E '^(tune|encoding|dims|batch|learning)'
| tune.trials    14
| tune.budget    600
| tune.best      14
| tune.trial.1   options as given: log-loss 2.80806 in epoch 1 of 4
| tune.trial.2   l2 1e-06: log-loss 2.80806 in epoch 1 of 4
| tune.trial.3   learning-rate 0.0007: log-loss 2.80306 in epoch 1 of 4
| tune.trial.4   encoding bochner, heads 4: log-loss 2.88307 in epoch 1 of 1, stopped
| tune.trial.5   learning-rate 0.0014, beta2 0.999: log-loss 2.83175 in epoch 1 of 1, stopped
| tune.trial.6   context 100, learning-rate 0.0014: log-loss 2.81053 in epoch 1 of 1, stopped
| tune.trial.7   blocks 1, heads 4, learning-rate 0.0007: log-loss 2.7147 in epoch 3 of 4
| tune.trial.8   beta2 0.99: log-loss 2.80819 in epoch 1 of 1, stopped
| tune.trial.9   periods 8, blocks 1, heads 4, learning-rate 0.0007: log-loss 2.69937 in epoch 4 of 4
| tune.trial.10  encoding bochner, periods 8, blocks 1, heads 4, learning-rate 0.0007: log-loss 2.90629 in epoch 1 of 1, stopped
| tune.trial.11  encoding bochner, blocks 3: log-loss 2.77772 in epoch 2 of 4
| tune.trial.12  context 100, periods 8, blocks 1, heads 4, learning-rate 0.0007, batch 32: log-loss 2.72369 in epoch 4 of 4
| tune.trial.13  periods 8, blocks 1, heads 4, learning-rate 0.00098: log-loss 2.69625 in epoch 3 of 4
| tune.trial.14  periods 8, blocks 1, heads 8, learning-rate 0.00098, batch 8: log-loss 2.69056 in epoch 2 of 4
$ grep -h '"key"' kept/*.json | sed 's/commit=[^\]*/C/g'
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000al2=1e-06\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000alearning-rate=0.0007\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000aencoding=bochner\u000aheads=4\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000alearning-rate=0.0014\u000abeta2=0.999\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000acontext=100\u000alearning-rate=0.0014\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000ablocks=1\u000aheads=4\u000alearning-rate=0.0007\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000abeta2=0.99\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000aperiods=8\u000ablocks=1\u000aheads=4\u000alearning-rate=0.0007\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000aencoding=bochner\u000aperiods=8\u000ablocks=1\u000aheads=4\u000alearning-rate=0.0007\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000aencoding=bochner\u000ablocks=3\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000acontext=100\u000aperiods=8\u000ablocks=1\u000aheads=4\u000alearning-rate=0.0007\u000abatch=32\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000aperiods=8\u000ablocks=1\u000aheads=4\u000alearning-rate=0.00098\u000a",
| "key": "lapse=0.1.0\u000aC\u000adata=72251ff16c98c505\u000aseed=1\u000aepochs=4\u000a--\u000aperiods=8\u000ablocks=1\u000aheads=8\u000alearning-rate=0.00098\u000abatch=8\u000a",
# The same search again: all of its trials are kept.
$ lapse tune shop.lapse -o again.st --trials 14 --parallel 1 --epochs 4 --threads 1 --keep kept --json 2>/dev/null | grep -E '"(best|first)'
|   "first": 2.80805531,
|   "best": 2.69056027,
|   "best_trial": 14,
$ lapse tune shop.lapse -o lstm.st --model lstm --when --dims 6 --trials 6 --seed 2 --parallel 1 --epochs 2 --threads 1 --json 2>/dev/null | sed -n '/trials/,$p'
|   "trials": [
|     "options as given: log-loss 2.68701 in epoch 2 of 2",
|     "learning-rate 0.0005, batch 32: log-loss 2.69382 in epoch 2 of 2",
|     "encoding bochner: log-loss 2.85636 in epoch 2 of 2",
|     "dropout 0.35, batch 8: log-loss 2.68048 in epoch 2 of 2",
|     "l2 1e-05, batch 32: log-loss 2.69381 in epoch 1 of 1, stopped",
|     "context 100, dropout 0.35, learning-rate 0.002, batch 8: log-loss 2.66489 in epoch 2 of 2"
|   ]
| }
$ lapse simulate --preset catalogue --items 200 --sequences 80 --days 300 --seed 5 -o items.csv && lapse import items.csv -o items.lapse --event item --field category >/dev/null
| wrote      1,220 events to items.csv in N s
$ lapse tune items.lapse -o items.st --task recommend --context 20 --trials 12 --seed 4 --parallel 1 --epochs 2 --threads 1 --json 2>/dev/null | sed -n '/trials/,$p'
|   "trials": [
|     "options as given: ndcg@10 0.303908 in epoch 1 of 2",
|     "gap-input off: ndcg@10 0.311731 in epoch 2 of 2",
|     "dropout 0.25, heads 4: ndcg@10 0.29139 in epoch 2 of 2",
|     "dropout 0.35, gap-input off: ndcg@10 0.258993 in epoch 1 of 1, stopped",
|     "dropout 0.35: ndcg@10 0.300059 in epoch 2 of 2, stopped",
|     "gap-input off, blocks 1, l2 1e-07: ndcg@10 0.262666 in epoch 1 of 1, stopped",
|     "dropout 0.4, gap-input off: ndcg@10 0.256278 in epoch 1 of 1, stopped",
|     "dropout 0.2, gap-input off: ndcg@10 0.260739 in epoch 1 of 1, stopped",
|     "dims 32, gap-input off, learning-rate 0.002: ndcg@10 0.338454 in epoch 2 of 2",
|     "encoding bochner: ndcg@10 0.310794 in epoch 2 of 2",
|     "batch 32: ndcg@10 0.259639 in epoch 1 of 1, stopped",
|     "dims 32, gap-input off, heads 4, learning-rate 0.002, beta2 0.99: ndcg@10 0.330698 in epoch 2 of 2"
|   ]
| }
$ lapse tune items.lapse -o items.st --task recommend --model transrec --trials 8 --parallel 1 --epochs 2 --threads 1 --json 2>/dev/null | sed -n '/trials/,$p'
|   "trials": [
|     "options as given: ndcg@10 0.204893 in epoch 2 of 2",
|     "l2 1e-06: ndcg@10 0.204893 in epoch 2 of 2",
|     "learning-rate 0.0007: ndcg@10 0.200993 in epoch 2 of 2",
|     "encoding mercer, batch 32: ndcg@10 0.186633 in epoch 1 of 1, stopped",
|     "dropout 0.35, beta2 0.999: ndcg@10 0.201279 in epoch 2 of 2, stopped",
|     "gap-input on, learning-rate 0.002: ndcg@10 0.251182 in epoch 2 of 2",
|     "gap-input on, learning-rate 0.002, batch 32: ndcg@10 0.19452 in epoch 1 of 1, stopped",
|     "beta2 0.99: ndcg@10 0.204893 in epoch 2 of 2"
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
|         "mean": 3.02812024,
|         "std": 0.000125833216
|       },
|       "log-loss": {
|         "mean": 2.85489664,
|         "std": 0.16346586
|       },
|       "accuracy": {
|         "mean": 0.0506382979,
|         "std": 0.0415237174
|       },
|       "best": false,
|       "cases": 47,
|       "parameters": 3856,
|       "difference": {
|         "mean": 0.777752654,
|         "low": null,
|         "high": null,
|         "p": null
|       },
|       "epochs": 2,
|       "reached": 0,
|       "seeds": [
|         {
|           "seed": 2,
|           "valid": 3.02803127,
|           "log-loss": 2.97048446,
|           "accuracy": 0.0212765957,
|           "epochs": 2,
|           "best_epoch": 2,
|         },
|         {
|           "seed": 3,
|           "valid": 3.02820922,
|           "log-loss": 2.73930883,
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
|         "mean": 2.86259738,
|         "std": 0.195407692
|       },
|       "log-loss": {
|         "mean": 3.03070836,
|         "std": 0.146167623
|       },
|       "accuracy": {
|         "mean": 0.0625531915,
|         "std": 0.0318950293
|       },
|       "best": false,
|       "cases": 47,
|       "parameters": 464,
|       "difference": {
|         "mean": 0.953564372,
|         "low": null,
|         "high": null,
|         "p": null
|       },
|       "epochs": 2,
|       "reached": 0,
|       "seeds": [
|         {
|           "seed": 2,
|           "valid": 3.00077149,
|           "log-loss": 2.92735225,
|           "accuracy": 0.085106383,
|           "epochs": 2,
|           "best_epoch": 2,
|         },
|         {
|           "seed": 3,
|           "valid": 2.72442328,
|           "log-loss": 3.13406448,
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
|         "mean": 2.78764206,
|         "std": 0.0275469288
|       },
|       "log-loss": {
|         "mean": 2.74447559,
|         "std": 0.0129782035
|       },
|       "accuracy": {
|         "mean": 0.123829787,
|         "std": 0.00541613705
|       },
|       "best": false,
|       "cases": 47,
|       "parameters": 1904,
|       "difference": {
|         "mean": 0.667331602,
|         "low": null,
|         "high": null,
|         "p": null
|       },
|       "epochs": 2,
|       "reached": 0,
|       "seeds": [
|         {
|           "seed": 2,
|           "valid": 2.80712068,
|           "log-loss": 2.73529862,
|           "accuracy": 0.127659574,
|           "epochs": 2,
|           "best_epoch": 2,
|         },
|         {
|           "seed": 3,
|           "valid": 2.76816344,
|           "log-loss": 2.75365257,
|           "accuracy": 0.12,
|           "epochs": 2,
|           "best_epoch": 1,
|         }
|       ]
|     },
|     {
|       "name": "lstm, none",
|       "config": "dims 6",
|       "runs": 2,
|       "diverged": 0,
|       "valid": {
|         "mean": 2.79160975,
|         "std": 0.147929092
|       },
|       "log-loss": {
|         "mean": 2.81786754,
|         "std": 0.142117002
|       },
|       "accuracy": {
|         "mean": 0.02,
|         "std": 0.0282842712
|       },
|       "best": false,
|       "cases": 47,
|       "parameters": 656,
|       "difference": {
|         "mean": 0.74072355,
|         "low": null,
|         "high": null,
|         "p": null
|       },
|       "epochs": 2,
|       "reached": 0,
|       "seeds": [
|         {
|           "seed": 2,
|           "valid": 2.68700809,
|           "log-loss": 2.91835944,
|           "accuracy": 0,
|           "epochs": 2,
|           "best_epoch": 2,
|         },
|         {
|           "seed": 3,
|           "valid": 2.89621141,
|           "log-loss": 2.71737565,
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
| attention, mercer dims 6 2.8549 (0.1635) 5.06 (4.15) 3.0281 (0.0001) N s N s +0.7778 -
| attention, none dims 4 3.0307 (0.1462) 6.26 (3.19) 2.8626 (0.1954) N s N s +0.9536 -
| lstm, mercer dims 6 2.7445 (0.0130) 12.38 (0.54) 2.7876 (0.0275) N s N s +0.6673 -
| lstm, none dims 6 2.8179 (0.1421) 2.00 (2.83) 2.7916 (0.1479) N s N s +0.7407 -
| markov * 2.0771 (0.3809) 27.57 (11.92) 1.9082 (0.3019) - N s - -
|
| * best log-loss. Differences from it are paired by seed and sequence, with 95 % bootstrap intervals;
| p is two-sided. The config of a row is the one with the best mean validation score.
|
| model config valid log-loss
| attention, mercer dims 4 3.0587 (0.2092)
| attention, mercer * dims 6 3.0281 (0.0001)
| attention, none * dims 4 2.8626 (0.1954)
| attention, none dims 6 2.9170 (0.0715)
| lstm, mercer dims 4 2.8170 (0.0894)
| lstm, mercer * dims 6 2.7876 (0.0275)
| lstm, none dims 4 2.8016 (0.2049)
| lstm, none * dims 6 2.7916 (0.1479)
| markov * 1.9082 (0.3019)
| Split test, 47 events; mean (standard deviation) over 2 seeds.
|
| | model | config | log-loss | accuracy, % | valid log-loss | epoch | training | minus the best | p |
| |---|---|---:|---:|---:|---:|---:|---:|---:|
| | attention, mercer | dims 6 | 2.8549 (0.1635) | 5.06 (4.15) | 3.0281 (0.0001) | N s | N s | +0.7778 | - |
| | attention, none | dims 4 | 3.0307 (0.1462) | 6.26 (3.19) | 2.8626 (0.1954) | N s | N s | +0.9536 | - |
| | lstm, mercer | dims 6 | 2.7445 (0.0130) | 12.38 (0.54) | 2.7876 (0.0275) | N s | N s | +0.6673 | - |
| | lstm, none | dims 6 | 2.8179 (0.1421) | 2.00 (2.83) | 2.7916 (0.1479) | N s | N s | +0.7407 | - |
| | markov * | | 2.0771 (0.3809) | 27.57 (11.92) | 1.9082 (0.3019) | - | N s | - | - |
|
| \* best log-loss. Differences from it are paired by seed and sequence, with 95 % bootstrap intervals; p is two-sided. The config of a row is the one with the best mean validation score.
|
| | model | config | valid log-loss |
| |---|---|---:|
| | attention, mercer | dims 4 | 3.0587 (0.2092) |
| | attention, mercer * | dims 6 | 3.0281 (0.0001) |
| | attention, none * | dims 4 | 2.8626 (0.1954) |
| | attention, none | dims 6 | 2.9170 (0.0715) |
| | lstm, mercer | dims 4 | 2.8170 (0.0894) |
| | lstm, mercer * | dims 6 | 2.7876 (0.0275) |
| | lstm, none | dims 4 | 2.8016 (0.2049) |
| | lstm, none * | dims 6 | 2.7916 (0.1479) |
| | markov * | | 1.9082 (0.3019) |
| model,config,chosen,best,runs,diverged,valid,valid_std,log-loss,log-loss_std,accuracy,accuracy_std,difference,difference_low,difference_high,p,epochs,epoch_seconds,seconds,reach_seconds
| "attention, mercer",dims 4,0,0,2,0,3.05865447,0.209199812,,,,,,,,,2
| "attention, mercer",dims 6,1,0,2,0,3.02812024,0.000125833216,2.85489664,0.16346586,0.0506382979,0.0415237174,0.777752654,,,,2
| "attention, none",dims 4,1,0,2,0,2.86259738,0.195407692,3.03070836,0.146167623,0.0625531915,0.0318950293,0.953564372,,,,2
| "attention, none",dims 6,0,0,2,0,2.91699072,0.0714827659,,,,,,,,,2
| "lstm, mercer",dims 4,0,0,2,0,2.8169673,0.0893976209,,,,,,,,,2
| "lstm, mercer",dims 6,1,0,2,0,2.78764206,0.0275469288,2.74447559,0.0129782035,0.123829787,0.00541613705,0.667331602,,,,2
| "lstm, none",dims 4,0,0,2,0,2.80157845,0.204889517,,,,,,,,,2
| "lstm, none",dims 6,1,0,2,0,2.79160975,0.147929092,2.81786754,0.142117002,0.02,0.0282842712,0.74072355,,,,2
| markov,,1,1,2,0,1.90820108,0.301932272,2.07714399,0.380925929,0.275744681,0.119155015,,,,,
$ lapse compare items.lapse --task recommend --models sasrec,item-markov,popularity --seeds 2 --dims 4 --epochs 1 --protocol uniform --keep none --parallel 1 --threads 1 --format csv 2>/dev/null | sed -E 's/(,[^,]*){3}$//'
| model,config,chosen,best,runs,diverged,valid,valid_std,ndcg@10,ndcg@10_std,hit@10,hit@10_std,mrr,mrr_std,difference,difference_low,difference_high,p,epochs
| sasrec,,1,0,2,0,0.0770740815,0.0302437043,0.0883969267,0.0231287697,0.15625,0.0441941738,0.09310448,0.0196446169,-0.242673183,-0.333614174,-0.157245214,0.00099950025,1
| item-markov,,1,1,2,0,0.321108544,0,0.331070109,0,0.525,0,0.284994334,0,,,,,
| popularity,,1,0,2,0,0.202843145,0,0.257344577,0,0.45,0,0.216505259,0,-0.0737255319,-0.150410839,-0.000834175753,0.047976012,
