# The same seed simulates the same events; an unknown preset is an error.
$ lapse simulate --preset shop -o shop.csv --sequences 5 --seed 7 --law law.csv | sed -E 's/[0-9,]+ events/N events/'
| wrote      N events to shop.csv, their true probabilities to law.csv in N s
$ lapse simulate -o - --sequences 5 --seed 7 2>/dev/null | cmp - shop.csv
$ lapse simulate -o again.csv --sequences 5 --seed 8 >/dev/null; cmp -s again.csv shop.csv
= 1
$ head -1 shop.csv
| user,time,item,action,category
$ head -1 law.csv | cut -d, -f1-3
| user,time,event
$ lapse simulate --preset zoo -o x.csv
! lapse: there is no preset 'zoo' to simulate; the presets are: shop, cycle, catalogue, sessions
= 2
$ lapse simulate -o no/such/folder/x.csv
! lapse: no/such/folder/x.csv: cannot write: No such file or directory
= 1
$ lapse import shop.csv -o shop.lapse --sequence user --time time --event action,item | grep -c .
| 8

# The preset catalogue: any number of items, consistent events and metadata, no --law.
$ lapse simulate --preset catalogue --items 500 --sequences 40 --seed 3 -o c.csv --catalogue items.csv
| wrote      567 events to c.csv, the catalogue to items.csv in N s
$ head -2 items.csv
| item,name,brand,category
| i1,dark netinu copper kettle,Pizoka,copper kettle
$ wc -l < items.csv
| 501
$ head -2 c.csv
| user,time,item,category
| u1,1767747311.904,i172,folding drill
$ lapse simulate --preset catalogue --items 500 --sequences 40 --seed 3 -o - --catalogue again.csv 2>/dev/null | cmp - c.csv
$ cmp items.csv again.csv
$ lapse simulate --preset catalogue --items 500 --sequences 40 -o x.csv --law none.csv
! lapse: the preset 'catalogue' has no table of probabilities, because its law has no closed form; use another preset
= 2
$ ls none.csv 2>/dev/null
= 2
$ lapse simulate --preset catalogue --items 99 -o x.csv
! lapse: items is 99; it must be 100 to 20000000, or 0 for 20000
= 2
$ lapse simulate --items 500 -o x.csv
! lapse: the preset 'shop' has a fixed set of items; 'catalogue' and 'sessions' accept a number of items
= 2
$ lapse simulate -o x.csv --catalogue items.csv
! lapse: only the presets 'catalogue' and 'sessions' have an item catalogue
= 2
$ lapse simulate --preset catalogue -o x.csv --catalogue x.csv
! lapse: --output x.csv and --catalogue x.csv are the same file
! lapse: see `lapse simulate --help`
= 2
$ lapse import c.csv -o c.lapse --sequence user --time time --event item --field category | grep -c .
| 8

# The preset sessions: its events, its catalogue, and the best possible scores of the next view.
$ lapse simulate --preset sessions --items 500 --sequences 40 --seed 3 -o s.csv --catalogue s-items.csv
| wrote      3,105 events to s.csv, the catalogue to s-items.csv in N s
$ head -3 s.csv
| user,time,item,action,category,department
| u1,1768488787.442,i208,search,kitchen pillow,clothing
| u1,1768490340.294,i211,view,kitchen pillow,clothing
$ head -2 s-items.csv
| item,name,brand,category,department
| i1,dark netinu copper kettle,Pizoka,copper kettle,electronics
$ lapse simulate --preset sessions --items 499 -o x.csv
! lapse: items is 499; it must be 500 to 20000000, or 0 for 2000
= 2
$ lapse simulate --preset sessions -o x.csv --sequences 2 --items 3000 --law x-law.csv
! lapse: a table of probabilities has one column for each of the 12000 event types, and at most 10000: simulate fewer items, or score the law instead of writing it
= 2
$ lapse import s.csv -o s.lapse --event item --action action --field department --min-sequence-events 40 --min-users 2
| read       3,105 rows, 164 kB from s.csv
| sequence   user, found by name
| time       time, found by name; unix seconds
| event      item
| ignored    category
| dropped    78 rows of 65 event types in fewer than 2 sequences
| events     3,027 events in 40 sequences, 365 event types
| fields     action (4 values), department (6 values)
| span       2026-01-01T20:28:47.524Z to 2026-03-01T21:52:43.142Z, 59.1 days
| wrote      s.lapse in N s, N MB/s
$ lapse train s.lapse -o s.safetensors --task recommend --model popularity --target action=view --split-by session --no-eval >/dev/null 2>&1
$ lapse info s.safetensors --all | grep -E '^(target|split)'
| target_time           known
| target                action=view
| split                 session
$ lapse eval s.safetensors s.lapse --negatives 0 --bootstrap 0
| split        test: 176 events in 35 sequences, among 365 items
| target time  not used: the model does not read the time of the next event
|
|             full-unseen    full
| candidates        304.4   365.0
| Hit@5            0.0284  0.0170
| NDCG@5           0.0171  0.0114
| Hit@10           0.0455  0.0341
| NDCG@10          0.0229  0.0170
| MRR              0.0303  0.0221
| full-unseen  rank among all items that are not in the history, as predict --unseen: quote this one
| full         rank among all items, as predict: quote this one where items repeat
$ lapse eval s.safetensors s.lapse --negatives 0 --bootstrap 0 --target action=search | head -1
| split        test: 80 events in 28 sequences, among 365 items
$ lapse eval s.safetensors s.lapse --negatives 0 --bootstrap 0 --target all | head -1
| split        test: 302 events in 35 sequences, among 365 items
$ lapse eval s.safetensors s.lapse --target action=look
! lapse: the dataset has no action 'look'; its actions are: view, search, add-to-cart, transaction
= 1
$ lapse eval s.safetensors s.lapse --target view
! lapse: the target is 'view'; it must be event, action, action=NAME or all, or two of these such as event,action=NAME
= 2
$ lapse train s.lapse -o x.safetensors --task recommend --model popularity --target action=look
! lapse: the dataset has no action 'look'; its actions are: view, search, add-to-cart, transaction
= 1
$ lapse simulate --preset sessions --items 500 --sequences 40 --seed 3 -o /dev/null --score s.safetensors --data s.lapse 2>/dev/null | grep -v '95 %'
| split        test: 176 events in 35 sequences, among 365 items
| target time  known: the model is told when the next event happens, and predicts which
| negatives    100 per event, seed 1, never an item of the sequence itself
|
|             full-unseen         full      uniform   popularity
| candidates        304.4        365.0        101.0        101.0
| Hit@5            0.6989       0.6989       0.8920       0.8636
| NDCG@5           0.4996       0.4996       0.7223       0.6898
| Hit@10           0.8352       0.8352       0.9318       0.9261
| NDCG@10          0.5442       0.5442       0.7358       0.7104
| MRR              0.4607       0.4607       0.6739       0.6437
| full-unseen  rank among all items that are not in the history, as predict --unseen: quote this one
| full         rank among all items, as predict: quote this one where items repeat
| uniform      rank among 100 random items: easier, to compare with studies that do the same
| popularity   rank among 100 items drawn by their popularity: likewise
$ lapse simulate --preset sessions --items 500 --sequences 40 --seed 4 -o /dev/null --score s.safetensors --data s.lapse 2>&1 | tail -1
| lapse: sequence 'u1' of the dataset differs from the simulation
$ lapse simulate --preset sessions --items 500 --sequences 40 --seed 3 -o /dev/null --score s.safetensors
! lapse: --score and --data go together: a model, and the dataset that it is scored on
! lapse: see `lapse simulate --help`
= 2

# The law of time beside a model of the times: best possible scores and expected numbers of events.
$ lapse simulate --sequences 60 --seed 2 -o shop60.csv >/dev/null; lapse import shop60.csv -o shop60.lapse --event action,item >/dev/null
$ lapse train shop60.lapse -o when.safetensors --task classify --when --when-components 2 --epochs 1 --dims 4 --context 8 --periods 2 --harmonics 1 --no-eval --checkpoint none >/dev/null 2>&1
$ lapse simulate --sequences 60 --seed 2 -o /dev/null --score when.safetensors --data shop60.lapse --horizon 7d --samples 5 2>/dev/null | sed -n '/^next time/,$p' | sed -E 's/[-+]?[0-9]+\.[0-9]+( %)?/N/g'
| next time    test: 241 events; NLL in nats per event, with times in hours
|         NLL  MAE of median  RMSE of mean   CRPS  within 50 %  within 80 %  within 95 %  PIT distance
| law  N          N         N  N       N       N       N        N
|
| forecast     events within 7d of the last event: N by the law, N by the model (N); means over 5 futures of 60 sequences
$ lapse simulate --sequences 60 --seed 2 -o /dev/null --score when.safetensors --data shop60.lapse --horizon 7d --samples 5 --json 2>/dev/null | sed -n '/"forecast"/,/}/p' | sed -E 's/(_events": )[0-9.]+/\1N/'
|   "forecast": {
|     "horizon_seconds": 604800,
|     "samples": 5,
|     "law_events": N,
|     "model_events": N
|   }
$ lapse simulate -o /dev/null --horizon 7d
! lapse: --horizon and --now need --score: the model whose forecast is compared
! lapse: see `lapse simulate --help`
= 2
$ lapse simulate --sequences 60 --seed 2 -o /dev/null --score when.safetensors --data shop60.lapse --horizon soon
! lapse: --horizon soon: 'soon' is not a length of time: give a number and its unit, such as 250ms, 90s, 15m, 3h, 2d, 1w or 2y
! lapse: see `lapse simulate --help`
= 2
