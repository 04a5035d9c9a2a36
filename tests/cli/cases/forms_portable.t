# Whole results of verbs, as text, JSON and CSV.
$ lapse import fields.csv -o fields.lapse --event item --action action --field device --number price --min-events 2 --json
| {
|   "input": "fields.csv",
|   "output": "fields.lapse",
|   "format": "CSV",
|   "columns": {
|     "sequence": {
|       "column": "user",
|       "given": false
|     },
|     "time": {
|       "column": "time",
|       "given": false
|     },
|     "event": {
|       "column": "item",
|       "given": true
|     }
|   },
|   "ignored": "",
|   "time_unit": "ISO 8601",
|   "timezone": "UTC",
|   "encoding": "utf-8",
|   "skipped_lines": 0,
|   "summary_rows": 0,
|   "local_rows": 0,
|   "ambiguous_rows": 0,
|   "missing_rows": 0,
|   "bytes": 1636,
|   "rows": 38,
|   "bad_rows": 0,
|   "cut_sequences": 0,
|   "sessions": 0,
|   "duplicate_rows": 0,
|   "inactive_rows": 0,
|   "inactive_sequences": 0,
|   "unpopular_rows": 0,
|   "unpopular_event_types": 0,
|   "rare_rows": 0,
|   "rare_event_types": 0,
|   "short_rows": 0,
|   "short_sequences": 0,
|   "rounds": 0,
|   "moved_rows": 0,
|   "events": 38,
|   "sequences": 13,
|   "event_types": 2,
|   "fields": [
|     {
|       "name": "action",
|       "type": "action",
|       "values": 2
|     },
|     {
|       "name": "device",
|       "type": "category",
|       "values": 3
|     },
|     {
|       "name": "price",
|       "type": "number"
|     }
|   ],
|   "first_time": 1767261600,
|   "last_time": 1767866400,
|   "seconds": N
| }
$ lapse import events.csv -o long.lapse --min-sequence-events 3 --min-users 2 --min-events 2 --min-count 2 --session-gap 2h --deduplicate consecutive >/dev/null; lapse info long.lapse --json
| {
|   "file": "long.lapse",
|   "type": "dataset",
|   "properties": {
|     "sequences": "24",
|     "events": "75",
|     "event_types": "4",
|     "first.time": "2026-01-01T00:00:00Z",
|     "last.time": "2026-01-05T07:34:00Z",
|     "span": "4.32 days",
|     "sequence.span": "median 40 minutes",
|     "sequence.events": "2 to 6, median 3",
|     "gap.median": "30 minutes",
|     "gap.zero": "0 % of events have the timestamp of the event before",
|     "source": "events.csv",
|     "column.sequence": "user",
|     "column.time": "time",
|     "column.event": "event",
|     "time.unit": "unix seconds",
|     "delimiter": "comma",
|     "header": "yes",
|     "order": "sequence by first appearance, then time; ties keep the order of the source",
|     "session_gap": "2 hours",
|     "deduplicate": "consecutive",
|     "min_sequence_events": "3",
|     "min_users": "2",
|     "min_events": "2",
|     "min_count": "2",
|     "min_rounds": "once",
|     "rows.read": "96",
|     "sessions": "40 in total; 11 sequences of the source have several",
|     "rows.duplicate": "5 duplicates, dropped",
|     "rows.short": "16 dropped with 16 short sequences"
|   }
| }
$ printf '{"user":"a","time":1,"event":"x"}\n{"user":"a","time":2\n[1]\n{"user":"a","time":3,"event":"y"}\n{"user":{},"time":4,"event":"y"}\n' >rows.jsonl; lapse import rows.jsonl -o rows.lapse --bad-rows skip --json
| {
|   "input": "rows.jsonl",
|   "output": "rows.lapse",
|   "format": "JSON Lines",
|   "columns": {
|     "sequence": {
|       "column": "user",
|       "given": false
|     },
|     "time": {
|       "column": "time",
|       "given": false
|     },
|     "event": {
|       "column": "event",
|       "given": false
|     }
|   },
|   "ignored": "",
|   "time_unit": "relative numbers",
|   "timezone": "UTC",
|   "encoding": "utf-8",
|   "skipped_lines": 0,
|   "summary_rows": 0,
|   "local_rows": 0,
|   "ambiguous_rows": 0,
|   "missing_rows": 0,
|   "bytes": 126,
|   "rows": 5,
|   "bad_rows": 3,
|   "first_bad_row": {
|     "file": "rows.jsonl",
|     "line": 2,
|     "column": 21,
|     "message": "the object does not end in its line: JSON Lines has one object per line (jq -c . FILE writes it so)"
|   },
|   "cut_sequences": 0,
|   "sessions": 0,
|   "duplicate_rows": 0,
|   "inactive_rows": 0,
|   "inactive_sequences": 0,
|   "unpopular_rows": 0,
|   "unpopular_event_types": 0,
|   "rare_rows": 0,
|   "rare_event_types": 0,
|   "short_rows": 0,
|   "short_sequences": 0,
|   "rounds": 0,
|   "moved_rows": 0,
|   "events": 2,
|   "sequences": 1,
|   "event_types": 2,
|   "fields": [],
|   "first_time": 1,
|   "last_time": 3,
|   "seconds": N
| }
$ lapse import events.csv -o events.lapse >/dev/null

# Two targets: the log of a run, and a run that continues.
$ lapse train fields.lapse -o two.safetensors --predict both --epochs 1 --dims 4 --batch 4 --threads 1 --seed 2 --no-eval --log two.jsonl >/dev/null 2>&1; \
  lapse train fields.lapse -o two.safetensors --predict both --epochs 3 --dims 4 --batch 4 --threads 1 --seed 2 --no-eval --log two.jsonl --resume >/dev/null 2>&1; \
  sed -E 's/: -?[0-9]+\.[0-9e+-]+/: N/g' two.jsonl
| {"epoch": 1, "loss": N, "valid": {"event": {"log_loss": N, "accuracy": N}, "action": {"log_loss": N, "accuracy": N}}, "score": N, "best": true, "seconds": N}
| {"epoch": 2, "loss": N, "valid": {"event": {"log_loss": N, "accuracy": N}, "action": {"log_loss": N, "accuracy": N}}, "score": N, "best": true, "seconds": N}
| {"epoch": 3, "loss": N, "valid": {"event": {"log_loss": N, "accuracy": N}, "action": {"log_loss": N, "accuracy": N}}, "score": N, "best": true, "seconds": N}
$ lapse info two.safetensors --history --json | sed -n '/"history"/,$p'
|   "history": [
|     {
|       "epoch": 1,
|       "loss": 1.27993051,
|       "valid": {
|         "event": {
|           "log_loss": 0.925693658,
|           "accuracy": 0.25
|         },
|         "action": {
|           "log_loss": 0.850412765,
|           "accuracy": 0.25
|         }
|       },
|       "score": 1.77610642,
|       "best": false
|     },
|     {
|       "epoch": 2,
|       "loss": 1.2937821,
|       "valid": {
|         "event": {
|           "log_loss": 0.919927711,
|           "accuracy": 0.25
|         },
|         "action": {
|           "log_loss": 0.842171951,
|           "accuracy": 0.25
|         }
|       },
|       "score": 1.76209966,
|       "best": false
|     },
|     {
|       "epoch": 3,
|       "loss": 1.22266333,
|       "valid": {
|         "event": {
|           "log_loss": 0.919170327,
|           "accuracy": 0.25
|         },
|         "action": {
|           "log_loss": 0.833900766,
|           "accuracy": 0.25
|         }
|       },
|       "score": 1.75307109,
|       "best": true
|     }
|   ]
| }
$ lapse predict two.safetensors fields_history.csv --at +1h --at +2d --top 2 --json 
| {
|   "model": "two.safetensors",
|   "history": "fields_history.csv",
|   "sequences": [
|     {
|       "sequence": "ann",
|       "last_time": 1767866400,
|       "predictions": [
|         {
|           "at": "+1h",
|           "time": 1767870000,
|           "timestamp": "2026-01-08T11:00:00Z",
|           "top": [
|             {
|               "event": "tea",
|               "probability": 0.765122657
|             },
|             {
|               "event": "cake",
|               "probability": 0.234877343
|             }
|           ],
|           "top_actions": [
|             {
|               "action": "view",
|               "probability": 0.588253953
|             },
|             {
|               "action": "buy",
|               "probability": 0.411746047
|             }
|           ]
|         },
|         {
|           "at": "+2d",
|           "time": 1768039200,
|           "timestamp": "2026-01-10T10:00:00Z",
|           "top": [
|             {
|               "event": "tea",
|               "probability": 0.789839997
|             },
|             {
|               "event": "cake",
|               "probability": 0.210160003
|             }
|           ],
|           "top_actions": [
|             {
|               "action": "view",
|               "probability": 0.604481636
|             },
|             {
|               "action": "buy",
|               "probability": 0.395518364
|             }
|           ]
|         }
|       ]
|     }
|   ],
|   "skipped": []
| }

# Rankings by counts.
$ lapse train events.lapse -o popularity.safetensors --task recommend --model popularity --threads 1 --no-eval >/dev/null 2>&1
$ lapse eval popularity.safetensors events.lapse --cutoffs 1,2,3,4 --bootstrap 0 --split all
| split        all: 84 events in 12 sequences, among 4 items
| target time  not used: the model does not read the time of the next event
| negatives    100 per event, seed 1, never an item of the sequence itself
|              uniform: 84 events had fewer candidates, and all of them were used
|              popularity: 84 events had fewer candidates, and all of them were used
|
|             full-unseen    full  uniform  popularity
| candidates          2.3     4.0      1.6         1.6
| Hit@1            1.0000  0.4286   1.0000      1.0000
| NDCG@1           1.0000  0.4286   1.0000      1.0000
| Hit@2            1.0000  0.7500   1.0000      1.0000
| NDCG@2           1.0000  0.6314   1.0000      1.0000
| Hit@3            1.0000  0.9286   1.0000      1.0000
| NDCG@3           1.0000  0.7207   1.0000      1.0000
| Hit@4            1.0000  1.0000   1.0000      1.0000
| NDCG@4           1.0000  0.7514   1.0000      1.0000
| MRR              1.0000  0.6667   1.0000      1.0000
| full-unseen  rank among all items that are not in the history, as predict --unseen: quote this one
| full         rank among all items, as predict: quote this one where items repeat
| uniform      rank among 100 random items: easier, to compare with studies that do the same
| popularity   rank among 100 items drawn by their popularity: likewise
$ lapse eval popularity.safetensors events.lapse --cutoffs 1,3 --bootstrap 0 --split all --json
| {
|   "model": "popularity.safetensors",
|   "data": "events.lapse",
|   "split": "all",
|   "target_time": "not used",
|   "cases": 84,
|   "cases_total": 84,
|   "sequences": 12,
|   "items": 4,
|   "negatives": 100,
|   "negative_seed": 1,
|   "popularity_of": "training",
|   "protocols": {
|     "full-unseen": {
|       "candidates": 2.3452381,
|       "hit@1": 1,
|       "ndcg@1": 1,
|       "hit@3": 1,
|       "ndcg@3": 1,
|       "mrr": 1
|     },
|     "full": {
|       "candidates": 4,
|       "hit@1": 0.428571429,
|       "ndcg@1": 0.428571429,
|       "hit@3": 0.928571429,
|       "ndcg@3": 0.720655992,
|       "mrr": 0.666666667
|     },
|     "uniform": {
|       "candidates": 1.63095238,
|       "short_cases": 84,
|       "hit@1": 1,
|       "ndcg@1": 1,
|       "hit@3": 1,
|       "ndcg@3": 1,
|       "mrr": 1
|     },
|     "popularity": {
|       "candidates": 1.63095238,
|       "short_cases": 84,
|       "hit@1": 1,
|       "ndcg@1": 1,
|       "hit@3": 1,
|       "ndcg@3": 1,
|       "mrr": 1
|     }
|   }
| }
$ lapse predict popularity.safetensors history.csv --at +1h --top 3 --unseen --json
| {
|   "model": "popularity.safetensors",
|   "history": "history.csv",
|   "sequences": [
|     {
|       "sequence": "max",
|       "last_time": 1769941800,
|       "predictions": [
|         {
|           "at": "+1h",
|           "time": 1769945400,
|           "timestamp": "2026-02-01T11:30:00Z",
|           "top": [
|             {
|               "item": "buy",
|               "score": -1.93283808,
|               "probability": 0.144736842
|             },
|             {
|               "item": "rate",
|               "score": -2.72129536,
|               "probability": 0.0657894737
|             }
|           ]
|         }
|       ]
|     },
|     {
|       "sequence": "nora",
|       "last_time": 1770023700,
|       "predictions": [
|         {
|           "at": "+1h",
|           "time": 1770027300,
|           "timestamp": "2026-02-02T10:15:00Z",
|           "top": [
|             {
|               "item": "rate",
|               "score": -2.72129536,
|               "probability": 0.0657894737
|             }
|           ]
|         }
|       ]
|     }
|   ],
|   "skipped": []
| }
$ lapse train events.lapse -o markov.safetensors --task classify --model markov --threads 1 --no-eval >/dev/null 2>&1
$ lapse predict markov.safetensors history.csv --at 2026-02-02T08:30:00Z --at +1h --top 2 --json
| {
|   "model": "markov.safetensors",
|   "history": "history.csv",
|   "sequences": [
|     {
|       "sequence": "max",
|       "last_time": 1769941800,
|       "predictions": [
|         {
|           "at": "2026-02-02T08:30:00Z",
|           "time": 1770021000,
|           "timestamp": "2026-02-02T08:30:00Z",
|           "top": [
|             {
|               "event": "buy",
|               "probability": 0.69138756
|             },
|             {
|               "event": "view",
|               "probability": 0.29007177
|             }
|           ]
|         },
|         {
|           "at": "+1h",
|           "time": 1769945400,
|           "timestamp": "2026-02-01T11:30:00Z",
|           "top": [
|             {
|               "event": "buy",
|               "probability": 0.69138756
|             },
|             {
|               "event": "view",
|               "probability": 0.29007177
|             }
|           ]
|         }
|       ]
|     },
|     {
|       "sequence": "nora",
|       "last_time": 1770023700,
|       "predictions": [
|         {
|           "at": "+1h",
|           "time": 1770027300,
|           "timestamp": "2026-02-02T10:15:00Z",
|           "top": [
|             {
|               "event": "rate",
|               "probability": 0.507675439
|             },
|             {
|               "event": "view",
|               "probability": 0.448464912
|             }
|           ]
|         }
|       ]
|     }
|   ],
|   "skipped": [
|     {
|       "at": "2026-02-02T08:30:00Z",
|       "reason": "the history ends after this time",
|       "histories": 1,
|       "first": "nora"
|     }
|   ]
| }
! lapse: --at 2026-02-02T08:30:00Z: skipped 1 history that ends after this time, the first 'nora', whose last event is at 2026-02-02T09:15:00Z
$ lapse predict markov.safetensors history.csv --at 2026-02-02T08:30:00Z --top 2 --csv
| sequence,at,time,timestamp,rank,event,probability
| max,2026-02-02T08:30:00Z,1770021000,2026-02-02T08:30:00Z,1,buy,0.69138756
| max,2026-02-02T08:30:00Z,1770021000,2026-02-02T08:30:00Z,2,view,0.29007177
! lapse: --at 2026-02-02T08:30:00Z: skipped 1 history that ends after this time, the first 'nora', whose last event is at 2026-02-02T09:15:00Z

# Names that a model does not know: five of them are listed.
$ for n in 4 5 6 7; do { echo user,time,event; for i in $(seq $n); do echo a,$i,new$i; done; } >strange$n.csv; lapse predict markov.safetensors strange$n.csv --at +1h; done
! lapse: strange4.csv: 4 events are of 4 event types that the model does not know: 'new1' (1), 'new2' (1), 'new3' (1), 'new4' (1); --unknown skip skips them
! lapse: strange5.csv: 5 events are of 5 event types that the model does not know: 'new1' (1), 'new2' (1), 'new3' (1), 'new4' (1), 'new5' (1); --unknown skip skips them
! lapse: strange6.csv: 6 events are of 6 event types that the model does not know: 'new1' (1), 'new2' (1), 'new3' (1), 'new4' (1), 'new5' (1), ...; --unknown skip skips them
! lapse: strange7.csv: 7 events are of 7 event types that the model does not know: 'new1' (1), 'new2' (1), 'new3' (1), 'new4' (1), 'new5' (1), ...; --unknown skip skips them
= 1

# States of the queries that are answered.
$ lapse train events.lapse -o net.safetensors --task recommend --epochs 1 --dims 4 --threads 1 --no-eval --checkpoint none >/dev/null 2>&1
$ lapse predict net.safetensors history.csv --at 2026-02-02T08:30:00Z --at +1h --vectors states.csv >/dev/null 2>&1; lapse predict net.safetensors history.csv --at +1h --vectors last.csv >/dev/null; \
  cut -d , -f 1,2 states.csv; cut -d , -f 1 last.csv; diff <(sed 2d states.csv | cut -d , -f 3-) <(cut -d , -f 3- last.csv) && echo same
| sequence,time
| max,1770021000.000
| max,1769945400.000
| nora,1770027300.000
| sequence
| max
| nora
| same
$ lapse info net.safetensors --vectors items.csv; cut -d , -f 1 items.csv
| item
| view
| cart
| buy
| rate

# The time of the next event, and futures.
$ lapse train events.lapse -o when.safetensors --when --epochs 1 --dims 4 --context 16 --batch 4 --seed 3 --threads 1 --no-eval --checkpoint none >/dev/null 2>&1
$ lapse eval when.safetensors events.lapse --within 1d,2d --split all --samples 0 --bootstrap 9 --json
| {
|   "model": "when.safetensors",
|   "data": "events.lapse",
|   "split": "all",
|   "now": "2026-01-03T13:18:00Z",
|   "cases": 12,
|   "within": [
|     {
|       "seconds": N,
|       "returned": 1,
|       "scores": [
|         {
|           "name": "attention",
|           "brier": 0.865675451,
|           "brier_low": 0.800946463,
|           "brier_high": 0.948690017,
|           "log_loss": 3.33986675,
|           "mean": 0.972250275
|         },
|         {
|           "name": "constant",
|           "brier": 0.0833333333,
|           "brier_low": 0.0277777778,
|           "brier_high": 0.127777778,
|           "log_loss": 0.316441383,
|           "mean": 0.166666667
|         },
|         {
|           "name": "logistic",
|           "brier": 0.0826749831,
|           "brier_low": 3.56354278e-06,
|           "brier_high": 0.148812347,
|           "log_loss": 0.462196304,
|           "mean": 0.00207488845
|         },
|         {
|           "name": "bg/nbd",
|           "brier": 0.0835394142,
|           "brier_low": 6.97483041e-05,
|           "brier_high": 0.150121392,
|           "log_loss": 1.13524924,
|           "mean": 0.00608734122
|         }
|       ],
|       "groups": [
|         {
|           "cases": 2,
|           "predicted": 0.948662591,
|           "observed": 0
|         },
|         {
|           "cases": 2,
|           "predicted": 0.969585502,
|           "observed": 0
|         },
|         {
|           "cases": 3,
|           "predicted": 0.976907243,
|           "observed": 0
|         },
|         {
|           "cases": 2,
|           "predicted": 0.978286502,
|           "observed": 0.5
|         },
|         {
|           "cases": 3,
|           "predicted": 0.981070793,
|           "observed": 0
|         }
|       ]
|     },
|     {
|       "seconds": N,
|       "returned": 3,
|       "scores": [
|         {
|           "name": "attention",
|           "brier": 0.7487251,
|           "brier_low": 0.5820316,
|           "brier_high": 0.832035423,
|           "log_loss": 5.4165541,
|           "mean": 0.999197703
|         },
|         {
|           "name": "constant",
|           "brier": 0.361111111,
|           "brier_low": 0.305555556,
|           "brier_high": 0.388888889,
|           "log_loss": 0.925325494,
|           "mean": 0.666666667
|         },
|         {
|           "name": "logistic",
|           "brier": 0.185995888,
|           "brier_low": 0.115626125,
|           "brier_high": 0.316662832,
|           "log_loss": 0.549591425,
|           "mean": 0.109202539
|         },
|         {
|           "name": "bg/nbd",
|           "brier": 0.250209319,
|           "brier_low": 0.166666428,
|           "brier_high": 0.416786867,
|           "log_loss": 3.15549079,
|           "mean": 0.00617286218
|         }
|       ],
|       "groups": [
|         {
|           "cases": 2,
|           "predicted": 0.998350079,
|           "observed": 0
|         },
|         {
|           "cases": 2,
|           "predicted": 0.999089069,
|           "observed": 0
|         },
|         {
|           "cases": 3,
|           "predicted": 0.999286454,
|           "observed": 0.333333333
|         },
|         {
|           "cases": 2,
|           "predicted": 0.999428914,
|           "observed": 1
|         },
|         {
|           "cases": 3,
|           "predicted": 0.999592319,
|           "observed": 0
|         }
|       ]
|     }
|   ],
|   "events": []
| }
$ lapse predict when.safetensors history.csv --when --now 2026-02-03 --within 2d,7d --top 2 --json 
| {
|   "model": "when.safetensors",
|   "history": "history.csv",
|   "sequences": [
|     {
|       "sequence": "max",
|       "from": "2026-02-03T00:00:00Z",
|       "p10": "2026-02-03T00:46:30.113Z",
|       "p50": "2026-02-03T04:59:45.848Z",
|       "p90": "2026-02-03T16:04:27.384Z",
|       "p10_days": 0.032293,
|       "p50_days": 0.20817,
|       "p90_days": 0.669761,
|       "mean_days": 0.294116,
|       "alive": 0.999999719,
|       "within": [
|         {
|           "within": "2d",
|           "seconds": N,
|           "probability": 0.999065017,
|           "top": [
|             {
|               "event": "rate",
|               "probability": 0.382767667
|             },
|             {
|               "event": "cart",
|               "probability": 0.335973468
|             }
|           ]
|         },
|         {
|           "within": "7d",
|           "seconds": N,
|           "probability": 1,
|           "top": [
|             {
|               "event": "rate",
|               "probability": 0.383211442
|             },
|             {
|               "event": "cart",
|               "probability": 0.336334512
|             }
|           ]
|         }
|       ]
|     },
|     {
|       "sequence": "nora",
|       "from": "2026-02-03T00:00:00Z",
|       "p10": "2026-02-03T00:42:09.548Z",
|       "p50": "2026-02-03T04:33:16.069Z",
|       "p90": "2026-02-03T14:37:43.991Z",
|       "p10_days": 0.0292772,
|       "p50_days": 0.189769,
|       "p90_days": 0.609537,
|       "mean_days": 0.267636,
|       "alive": 0.999999919,
|       "within": [
|         {
|           "within": "2d",
|           "seconds": N,
|           "probability": 0.999548818,
|           "top": [
|             {
|               "event": "cart",
|               "probability": 0.384181419
|             },
|             {
|               "event": "view",
|               "probability": 0.294934403
|             }
|           ]
|         },
|         {
|           "within": "7d",
|           "seconds": N,
|           "probability": 1,
|           "top": [
|             {
|               "event": "cart",
|               "probability": 0.384343036
|             },
|             {
|               "event": "view",
|               "probability": 0.295135222
|             }
|           ]
|         }
|       ]
|     }
|   ]
| }
$ lapse forecast when.safetensors history.csv --horizon 1h --now 2026-02-02T08:30:00Z --samples 8 --threads 1 --json 
| {
|   "model": "when.safetensors",
|   "history": "history.csv",
|   "horizon_seconds": 3600,
|   "seed": 1,
|   "partial": false,
|   "sequences": [
|     {
|       "sequence": "max",
|       "from": "2026-02-02T08:30:00Z",
|       "samples": 8,
|       "events": 0.5,
|       "p10": 0,
|       "p90": 2,
|       "any": 0.25,
|       "types": [
|         {
|           "event": "rate",
|           "events": 0.25,
|           "any": 0.125
|         },
|         {
|           "event": "cart",
|           "events": 0.125,
|           "any": 0.125
|         },
|         {
|           "event": "buy",
|           "events": 0.125,
|           "any": 0.125
|         }
|       ]
|     },
|     {
|       "sequence": "nora",
|       "from": "2026-02-02T09:15:00Z",
|       "samples": 8,
|       "events": 0.5,
|       "p10": 0,
|       "p90": 1,
|       "any": 0.5,
|       "types": [
|         {
|           "event": "rate",
|           "events": 0.375,
|           "any": 0.375
|         },
|         {
|           "event": "cart",
|           "events": 0.125,
|           "any": 0.125
|         },
|         {
|           "event": "view",
|           "events": 0,
|           "any": 0
|         }
|       ]
|     }
|   ]
| }
$ lapse forecast when.safetensors history.csv --horizon 1h --samples 8 --threads 1 --json | grep samples
|       "samples": 8,
|       "samples": 8,

# A step of the benchmark: what it counts.
$ lapse bench --preset so --rounds 1 --batch 16 --threads 1 --json | grep -E '"(what|preset|items|parameters|histories|input_events|target_events|threads|rounds)"'
|   "preset": "so",
|   "what": "train",
|   "threads": 1,
|   "rounds": 1,
|   "items": 22,
|   "parameters": 22448,
|   "histories": 16,
|   "input_events": 886,
|   "target_events": 886,
$ lapse bench --preset so --rounds 1 --batch 40 --threads 1 --json | tr -d '\n ' | grep -oE '"op":"[a-z_()]*","calls":[0-9]*,"seconds":[^,]*,"flop":[^,]*,"bytes":[^,]*' | sed -E 's/"seconds":[^,]*,//' | sort
| "op":"(adam)","calls":1,"flop":0,"bytes":1.97542e+06
| "op":"(batch)","calls":1,"flop":0,"bytes":0
| "op":"(waiting)","calls":1,"flop":0,"bytes":0
| "op":"add","calls":32,"flop":137024,"bytes":1.64429e+06
| "op":"attention","calls":16,"flop":5.16388e+07,"bytes":5.21548e+06
| "op":"attention_gradient","calls":16,"flop":1.29097e+08,"bytes":1.04224e+07
| "op":"basis","calls":48,"flop":1.43875e+07,"bytes":4.19282e+06
| "op":"basis_gradient","calls":48,"flop":15360,"bytes":8.30354e+06
| "op":"column_dot","calls":48,"flop":245760,"bytes":1.9968e+06
| "op":"cross_entropy","calls":16,"flop":565224,"bytes":197036
| "op":"cross_entropy_gradient","calls":16,"flop":565224,"bytes":385444
| "op":"dropout","calls":96,"flop":3.28858e+06,"bytes":3.28858e+06
| "op":"embed","calls":32,"flop":0,"bytes":1.09619e+06
| "op":"embed_gradient","calls":32,"flop":137024,"bytes":1.64429e+06
| "op":"harmonics","calls":16,"flop":5120,"bytes":11264
| "op":"harmonics_gradient","calls":16,"flop":1024,"bytes":21504
| "op":"layer_norm","calls":48,"flop":1.64429e+06,"bytes":1.70796e+06
| "op":"layer_norm_gradient","calls":48,"flop":1.64429e+06,"bytes":2.53625e+06
| "op":"linear","calls":288,"flop":1.8142e+08,"bytes":1.98169e+07
| "op":"linear_outer","calls":144,"flop":9.07099e+07,"bytes":9.50322e+06
| "op":"reflect","calls":32,"flop":2.74048e+06,"bytes":8.22144e+06
| "op":"reflect_gradient","calls":32,"flop":4.11072e+06,"bytes":1.37024e+07
| "op":"relu","calls":16,"flop":68512,"bytes":548096
| "op":"relu_gradient","calls":16,"flop":68512,"bytes":822144
| "op":"scale_columns","calls":96,"flop":491520,"bytes":3.9936e+06
