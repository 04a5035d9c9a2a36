# Ranking metrics of recommenders and baselines: protocols, cutoffs, slices, JSON, errors.
$ lapse import events.csv -o events.lapse >/dev/null
$ lapse train events.lapse -o popularity.safetensors --task recommend --model popularity --threads 1
| saved        popularity.safetensors after N s
| split        test: 12 events in 12 sequences, among 4 items
| target time  not used: the model does not read the time of the next event
| negatives    100 per event, seed 1, never an item of the sequence itself
|              uniform: 12 events had fewer candidates, and all of them were used
|              popularity: 12 events had fewer candidates, and all of them were used
|
|             full-unseen         full  uniform  popularity
| candidates          1.7          4.0      1.7         1.7
| Hit@5            1.0000       1.0000   1.0000      1.0000
| NDCG@5           1.0000       0.6936   1.0000      1.0000
|   95 %                   0.569-0.824
| Hit@10           1.0000       1.0000   1.0000      1.0000
| NDCG@10          1.0000       0.6936   1.0000      1.0000
|   95 %                   0.569-0.824
| MRR              1.0000       0.5903   1.0000      1.0000
|   95 %                   0.424-0.764
| full-unseen  rank among all items that are not in the history, as predict --unseen: quote this one
| full         rank among all items, as predict: quote this one where items repeat
| uniform      rank among 100 random items: easier, to compare with studies that do the same
| popularity   rank among 100 items drawn by their popularity: likewise
! Data      events.lapse: 96 events in 12 sequences, 4 event types
! Model     model popularity, task recommend, target-time known, context 8
! Run       split-by leave-one-out, seed 1, threads 1
$ lapse train events.lapse -o recency.safetensors --task recommend --model recency --no-eval --threads 1
| saved        recency.safetensors after N s
! Data      events.lapse: 96 events in 12 sequences, 4 event types
! Model     model recency, task recommend, target-time known, context 8
! Run       split-by leave-one-out, seed 1, threads 1
$ lapse train events.lapse -o item.safetensors --task recommend --model item-markov --no-eval 2>/dev/null
| saved        item.safetensors after N s
$ lapse eval popularity.safetensors events.lapse --cutoffs 1 --bootstrap 0
| split        test: 12 events in 12 sequences, among 4 items
| target time  not used: the model does not read the time of the next event
| negatives    100 per event, seed 1, never an item of the sequence itself
|              uniform: 12 events had fewer candidates, and all of them were used
|              popularity: 12 events had fewer candidates, and all of them were used
|
|             full-unseen    full  uniform  popularity
| candidates          1.7     4.0      1.7         1.7
| Hit@1            1.0000  0.3333   1.0000      1.0000
| NDCG@1           1.0000  0.3333   1.0000      1.0000
| MRR              1.0000  0.5903   1.0000      1.0000
| full-unseen  rank among all items that are not in the history, as predict --unseen: quote this one
| full         rank among all items, as predict: quote this one where items repeat
| uniform      rank among 100 random items: easier, to compare with studies that do the same
| popularity   rank among 100 items drawn by their popularity: likewise
$ lapse eval item.safetensors events.lapse --cutoffs 1,2 --negatives 2 --slices --split all
| split        all: 84 events in 12 sequences, among 4 items
| target time  not used: the model does not read the time of the next event
| negatives    2 per event, seed 1, never an item of the sequence itself
|              uniform: 72 events had fewer candidates, and all of them were used
|              popularity: 72 events had fewer candidates, and all of them were used
|
|             full-unseen         full      uniform   popularity
| candidates          2.3          4.0          1.6          1.6
| Hit@1            0.7976       0.6190       0.9643       0.9643
|   95 %      0.667-0.907  0.512-0.708  0.902-1.000  0.902-1.000
| NDCG@1           0.7976       0.6190       0.9643       0.9643
|   95 %      0.667-0.907  0.512-0.708  0.902-1.000  0.902-1.000
| Hit@2            1.0000       1.0000       1.0000       1.0000
| NDCG@2           0.9253       0.8594       0.9868       0.9868
|   95 %      0.877-0.966  0.820-0.892  0.964-1.000  0.964-1.000
| MRR              0.8988       0.8095       0.9821       0.9821
|   95 %      0.833-0.953  0.756-0.854  0.951-1.000  0.951-1.000
| full-unseen  rank among all items that are not in the history, as predict --unseen: quote this one
| full         rank among all items, as predict: quote this one where items repeat
| uniform      rank among 2 random items: easier, to compare with studies that do the same
| popularity   rank among 2 items drawn by their popularity: likewise
|
| by history     events  full-unseen Hit@2  NDCG@2         95 %  uniform Hit@2  NDCG@2
| 1 to 4 events      48             1.0000  0.8847  0.823-0.946         1.0000  0.9846
| 5 to 9 events      36             1.0000  0.9795  0.951-1.000         1.0000  0.9897
|
| by popularity        events  full-unseen Hit@2  NDCG@2         95 %  uniform Hit@2  NDCG@2
| 4 to 18 in training      48             1.0000  1.0000                      1.0000  1.0000
| 40 in training           36             1.0000  0.8257  0.747-0.911         1.0000  0.9692
|
| by lag              events  full-unseen Hit@2  NDCG@2         95 %  uniform Hit@2  NDCG@2
| 1 minute to 1 hour      42             1.0000  1.0000                      1.0000  1.0000
| 1 hour to 1 day         36             1.0000  0.8257  0.747-0.911         1.0000  0.9692
| 1 day to 1 week          6             1.0000  1.0000                      1.0000  1.0000
$ lapse eval recency.safetensors events.lapse --cutoffs 2 --negatives 0 --bootstrap 0 --cases 5 --negative-seed 3 --split all
| split        all: 5 events in 4 sequences, among 4 items
|              sampled from 84 events, seed 3
| target time  known: the model is told when the next event happens, and predicts which
|
|             full-unseen    full
| candidates          2.2     4.0
| Hit@2            1.0000  0.6000
| NDCG@2           1.0000  0.4524
| MRR              1.0000  0.5167
| full-unseen  rank among all items that are not in the history, as predict --unseen: quote this one
| full         rank among all items, as predict: quote this one where items repeat
$ lapse eval recency.safetensors events.lapse --cutoffs 2 --negatives 1 --bootstrap 20 --json
| {
|   "model": "recency.safetensors",
|   "data": "events.lapse",
|   "split": "test",
|   "target_time": "known",
|   "cases": 12,
|   "cases_total": 12,
|   "sequences": 12,
|   "items": 4,
|   "negatives": 1,
|   "negative_seed": 1,
|   "popularity_of": "training",
|   "protocols": {
|     "full-unseen": {
|       "candidates": 1.66666667,
|       "hit@2": 1,
|       "ndcg@2": 1,
|       "mrr": 1
|     },
|     "full": {
|       "candidates": 4,
|       "hit@2": 0.583333333,
|       "hit@2_low": 0.333333333,
|       "hit@2_high": 0.75,
|       "ndcg@2": 0.491065772,
|       "ndcg@2_low": 0.271821626,
|       "ndcg@2_high": 0.612367554,
|       "mrr": 0.590277778,
|       "mrr_low": 0.436458333,
|       "mrr_high": 0.673958333
|     },
|     "uniform": {
|       "candidates": 1.5,
|       "short_cases": 6,
|       "hit@2": 1,
|       "ndcg@2": 1,
|       "mrr": 1
|     },
|     "popularity": {
|       "candidates": 1.5,
|       "short_cases": 6,
|       "hit@2": 1,
|       "ndcg@2": 1,
|       "mrr": 1
|     }
|   }
| }
$ lapse eval popularity.safetensors events.lapse --bootstrap 0 --cutoffs $(seq -s , 32) | grep -c '^NDCG\|^Hit'
| 64
$ lapse eval popularity.safetensors events.lapse --cutoffs $(seq -s , 33)
! lapse: --cutoffs takes up to 32 integers separated by commas, such as 5,10, not '1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33'
! lapse: see `lapse eval --help`
= 2
$ lapse eval popularity.safetensors events.lapse --cutoffs 5,
! lapse: --cutoffs takes up to 32 integers separated by commas, such as 5,10, not '5,'
! lapse: see `lapse eval --help`
= 2
$ lapse eval popularity.safetensors events.lapse --cutoffs 0
! lapse: --cutoffs takes up to 32 integers separated by commas, such as 5,10, not '0'
! lapse: see `lapse eval --help`
= 2
$ lapse eval popularity.safetensors events.lapse --negatives 10001
! lapse: negatives is 10001, but must be 0 to 10000
= 2
# A network: options of the evaluation do not change its ranks, and training prints them at the end.
$ lapse train events.lapse -o net.safetensors --task recommend --dims 4 --epochs 1 --threads 1 2>/dev/null >train.txt; lapse eval net.safetensors events.lapse >eval.txt; sed -n '2,/^$/p' train.txt | head -4; tail -n +2 train.txt | head -$(wc -l <eval.txt) | cmp - eval.txt
| split        test: 12 events in 12 sequences, among 4 items
| target time  known: the model is told when the next event happens, and predicts which
| negatives    100 per event, seed 1, never an item of the sequence itself
|              uniform: 12 events had fewer candidates, and all of them were used
$ lapse info net.safetensors --json | grep -c '"score.valid.ndcg@10"'
| 1
