# Whole files of every preset, as checksums: another number drawn, or another order of draws, gives other events.
$ for preset in shop cycle catalogue sessions; do lapse simulate --preset $preset --sequences 40 --seed 11 -o $preset.csv; done; cksum *.csv
| wrote      1,484 events to shop.csv in N s
| wrote      1,595 events to cycle.csv in N s
| wrote      622 events to catalogue.csv in N s
| wrote      3,240 events to sessions.csv in N s
| 276497847 107 bad.csv
| 983435063 24547 catalogue.csv
| 433615530 33162 cycle.csv
| 4018341738 1923 events.csv
| 3691086464 1636 fields.csv
| 1029270097 161 fields_history.csv
| 530637689 168 history.csv
| 3778852812 59 renamed.csv
| 4138836057 224 repeats.csv
| 2036341226 174014 sessions.csv
| 2203323750 58288 shop.csv
| 2155125878 167 strange.csv
$ for preset in shop cycle; do lapse simulate --preset $preset --sequences 12 --days 100 --seed 12 --law law.csv -o $preset.csv; cksum law.csv $preset.csv; done
| wrote      287 events to shop.csv, their true probabilities to law.csv in N s
| 3852450330 40302 law.csv
| 1816741338 10960 shop.csv
| wrote      204 events to cycle.csv, their true probabilities to law.csv in N s
| 279845748 12929 law.csv
| 3115263986 4149 cycle.csv
$ lapse simulate --preset catalogue --items 3000 --sequences 150 --days 200 --seed 13 --catalogue items.csv -o c.csv; cksum items.csv c.csv
| wrote      2,306 events to c.csv, the catalogue to items.csv in N s
| 133822194 159873 items.csv
| 1021474389 89827 c.csv
$ lapse simulate --preset sessions --items 600 --sequences 5 --days 30 --seed 14 --law law.csv --catalogue items.csv -o s.csv; cksum items.csv law.csv s.csv
| wrote      297 events to s.csv, their true probabilities to law.csv, the catalogue to items.csv in N s
| 439803203 36997 items.csv
| 1378643737 4768679 law.csv
| 2682748309 15379 s.csv
$ lapse simulate --preset sessions --items 5000 --sequences 100 --seed 15 --catalogue items.csv -o s.csv; cksum items.csv s.csv
| wrote      7,648 events to s.csv, the catalogue to items.csv in N s
| 2359943272 310987 items.csv
| 2693271536 391704 s.csv
$ lapse simulate --preset catalogue --sequences 30 --seed 16 --catalogue items.csv -o c.csv; cksum items.csv c.csv
| wrote      455 events to c.csv, the catalogue to items.csv in N s
| 3020300955 1089838 items.csv
| 741347563 18096 c.csv
# The scores of the law, and expected numbers of events, with every digit.
$ lapse simulate --preset shop --sequences 30 --days 60 --seed 3 -o shop.csv && lapse import shop.csv -o shop.lapse --event action,item >/dev/null && \
    lapse train shop.lapse -o m.st --when --dims 6 --blocks 1 --context 12 --epochs 2 --threads 1 --no-eval >/dev/null 2>&1
| wrote      491 events to shop.csv in N s
$ lapse simulate --preset shop --sequences 30 --days 60 --seed 3 -o /dev/null --score m.st --data shop.lapse --json
| {
|   "model": "law",
|   "data": "shop.lapse",
|   "target": "event",
|   "split": "test",
|   "target_time": "known",
|   "cases": 55,
|   "sequences": 3,
|   "accuracy": 0.654545455,
|   "log_loss": 0.701500331,
|   "macro_f1": 0.674494949,
|   "accuracy_low": 0,
|   "accuracy_high": 0.7,
|   "log_loss_low": 0.542252981,
|   "log_loss_high": 1.88927714,
|   "time": {
|     "unit": "minute",
|     "unit_seconds": 60,
|     "floor_seconds": 2.39499998,
|     "cases": 55,
|     "sequences": 3,
|     "scores": [
|       {
|         "name": "law",
|         "nll": 5.90426954,
|         "nll_low": 5.30265474,
|         "nll_high": 11.558373,
|         "mae": 3004.07823,
|         "rmse": 7552.49381,
|         "crps": 2322.01275,
|         "coverage_50": 0.563636364,
|         "coverage_80": 0.890909091,
|         "coverage_95": 0.945454545,
|         "pit_distance": 0.156853075
|       }
|     ]
|   }
| }
! wrote      491 events to /dev/null in N s
$ lapse simulate --preset shop --sequences 30 --days 60 --seed 3 -o /dev/null --score m.st --data shop.lapse --horizon 7d --samples 20
| split        test: 55 events in 3 sequences
| target time  known: the model is told when the next event happens, and predicts which
| accuracy     65.45 % (95 % interval 0.00 to 70.00)
| log-loss     0.7015 nats per event (95 % interval 0.5423 to 1.8893)
| macro-F1     0.6745
|
| next time    test: 55 events; NLL in nats per event, with times in minutes
|         NLL  MAE of median  RMSE of mean  CRPS  within 50 %  within 80 %  within 95 %  PIT distance
| law  5.9043           3004          7552  2322       56.4 %       89.1 %       94.5 %        0.1569
|
| forecast     events within 7d of the last event: 4.8276 by the law, 8.6483 by the model (+79.14 %); means over 20 futures of 29 sequences
! wrote      491 events to /dev/null in N s
$ lapse simulate --preset shop --sequences 30 --days 60 --seed 3 -o /dev/null --score m.st --data shop.lapse --horizon 2d --now 2026-03-01 --samples 10 --json
| {
|   "model": "law",
|   "data": "shop.lapse",
|   "target": "event",
|   "split": "test",
|   "target_time": "known",
|   "cases": 55,
|   "sequences": 3,
|   "accuracy": 0.654545455,
|   "log_loss": 0.701500331,
|   "macro_f1": 0.674494949,
|   "accuracy_low": 0,
|   "accuracy_high": 0.7,
|   "log_loss_low": 0.542252981,
|   "log_loss_high": 1.88927714,
|   "time": {
|     "unit": "minute",
|     "unit_seconds": 60,
|     "floor_seconds": 2.39499998,
|     "cases": 55,
|     "sequences": 3,
|     "scores": [
|       {
|         "name": "law",
|         "nll": 5.90426954,
|         "nll_low": 5.30265474,
|         "nll_high": 11.558373,
|         "mae": 3004.07823,
|         "rmse": 7552.49381,
|         "crps": 2322.01275,
|         "coverage_50": 0.563636364,
|         "coverage_80": 0.890909091,
|         "coverage_95": 0.945454545,
|         "pit_distance": 0.156853075
|       }
|     ]
|   },
|   "forecast": {
|     "horizon_seconds": 172800,
|     "samples": 10,
|     "law_events": 0.506896552,
|     "model_events": 1.64827586
|   }
| }
! wrote      491 events to /dev/null in N s
$ lapse simulate --preset sessions --items 500 --sequences 20 --seed 3 -o s.csv && lapse import s.csv -o s.lapse --event item >/dev/null && \
    lapse train s.lapse -o s.st --task recommend --model lstm --dims 6 --epochs 1 --threads 1 --no-eval >/dev/null 2>&1
| wrote      1,600 events to s.csv in N s
$ lapse simulate --preset sessions --items 500 --sequences 20 --seed 3 -o /dev/null --score s.st --data s.lapse --cases 100 --json
| {
|   "model": "law",
|   "data": "s.lapse",
|   "split": "test",
|   "target_time": "known",
|   "cases": 20,
|   "cases_total": 20,
|   "sequences": 20,
|   "items": 391,
|   "negatives": 100,
|   "negative_seed": 1,
|   "popularity_of": "training",
|   "protocols": {
|     "full-unseen": {
|       "candidates": 324.75,
|       "hit@5": 0.65,
|       "hit@5_low": 0.45,
|       "hit@5_high": 0.85,
|       "ndcg@5": 0.545231768,
|       "ndcg@5_low": 0.344245663,
|       "ndcg@5_high": 0.720543399,
|       "hit@10": 0.8,
|       "hit@10_low": 0.6,
|       "hit@10_high": 0.95,
|       "ndcg@10": 0.590509753,
|       "ndcg@10_low": 0.407436525,
|       "ndcg@10_high": 0.753380333,
|       "mrr": 0.533439068,
|       "mrr_low": 0.336728136,
|       "mrr_high": 0.703236671
|     },
|     "full": {
|       "candidates": 391,
|       "hit@5": 0.6,
|       "hit@5_low": 0.4,
|       "hit@5_high": 0.8,
|       "ndcg@5": 0.485515931,
|       "ndcg@5_low": 0.285438923,
|       "ndcg@5_high": 0.665770683,
|       "hit@10": 0.75,
|       "hit@10_low": 0.55,
|       "hit@10_high": 0.95,
|       "ndcg@10": 0.533552776,
|       "ndcg@10_low": 0.359003324,
|       "ndcg@10_high": 0.699841951,
|       "mrr": 0.476392734,
|       "mrr_low": 0.295420262,
|       "mrr_high": 0.652890473
|     },
|     "uniform": {
|       "candidates": 101,
|       "short_cases": 0,
|       "hit@5": 0.8,
|       "hit@5_low": 0.6,
|       "hit@5_high": 0.95,
|       "ndcg@5": 0.647422956,
|       "ndcg@5_low": 0.456752937,
|       "ndcg@5_high": 0.813092975,
|       "hit@10": 0.9,
|       "hit@10_low": 0.75,
|       "hit@10_high": 1,
|       "ndcg@10": 0.676927697,
|       "ndcg@10_low": 0.515086795,
|       "ndcg@10_high": 0.828921439,
|       "mrr": 0.609367058,
|       "mrr_low": 0.419818691,
|       "mrr_high": 0.777243056
|     },
|     "popularity": {
|       "candidates": 101,
|       "short_cases": 0,
|       "hit@5": 0.8,
|       "hit@5_low": 0.6,
|       "hit@5_high": 0.95,
|       "ndcg@5": 0.64434264,
|       "ndcg@5_low": 0.452311297,
|       "ndcg@5_high": 0.8,
|       "hit@10": 0.8,
|       "hit@10_low": 0.6,
|       "hit@10_high": 0.95,
|       "ndcg@10": 0.64434264,
|       "ndcg@10_low": 0.452311297,
|       "ndcg@10_high": 0.8,
|       "mrr": 0.603582137,
|       "mrr_low": 0.416730124,
|       "mrr_high": 0.770530303
|     }
|   }
| }
! wrote      1,600 events to /dev/null in N s
$ lapse simulate --preset sessions --items 500 --sequences 20 --seed 3 -o /dev/null --score s.st --data s.lapse --cases 50
| split        test: 20 events in 20 sequences, among 391 items
| target time  known: the model is told when the next event happens, and predicts which
| negatives    100 per event, seed 1, never an item of the sequence itself
|
|             full-unseen         full      uniform   popularity
| candidates        324.8        391.0        101.0        101.0
| Hit@5            0.6500       0.6000       0.8000       0.8000
|   95 %      0.450-0.850  0.400-0.800  0.600-0.950  0.600-0.950
| NDCG@5           0.5452       0.4855       0.6474       0.6443
|   95 %      0.344-0.721  0.285-0.666  0.457-0.813  0.452-0.800
| Hit@10           0.8000       0.7500       0.9000       0.8000
|   95 %      0.600-0.950  0.550-0.950  0.750-1.000  0.600-0.950
| NDCG@10          0.5905       0.5336       0.6769       0.6443
|   95 %      0.407-0.753  0.359-0.700  0.515-0.829  0.452-0.800
| MRR              0.5334       0.4764       0.6094       0.6036
|   95 %      0.337-0.703  0.295-0.653  0.420-0.777  0.417-0.771
| full-unseen  rank among all items that are not in the history, as predict --unseen: quote this one
| full         rank among all items, as predict: quote this one where items repeat
| uniform      rank among 100 random items: easier, to compare with studies that do the same
| popularity   rank among 100 items drawn by their popularity: likewise
! wrote      1,600 events to /dev/null in N s
