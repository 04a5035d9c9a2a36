# Fields of events: import, info, training, prediction.

$ lapse import fields.csv -o fields.lapse --event item --action action --field device --number price
| read       38 rows, 1.6 kB from fields.csv
| sequence   user, found by name
| time       time, found by name; ISO 8601
| event      item
| events     38 events in 13 sequences, 2 event types
| fields     action (2 values), device (3 values), price (number)
| span       2026-01-01T10:00:00Z to 2026-01-08T10:00:00Z, 7 days
| wrote      fields.lapse in N s, N MB/s
$ lapse import fields.csv -o again.lapse --event item --action action --field device --number price --threads 3 --json
| {
|   "input": "fields.csv",
|   "output": "again.lapse",
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
$ cmp fields.lapse again.lapse
$ lapse info fields.lapse | head -n 8
| file             fields.lapse (dataset)
| sequences        13
| events           38
| event_types      2
| field.1          action (action): 2 distinct values
| field.2          device (category): 3 distinct values
| field.3          price (number): mean 6.89865, standard deviation 3.48038, 1 missing
| first.time       2026-01-01T10:00:00Z
$ lapse import fields.csv -o plain.lapse --event item
| read       38 rows, 1.6 kB from fields.csv
| sequence   user, found by name; runner-up: device
| time       time, found by name; ISO 8601
| event      item
| ignored    action, device, price
| events     38 events in 13 sequences, 2 event types
| span       2026-01-01T10:00:00Z to 2026-01-08T10:00:00Z, 7 days
| wrote      plain.lapse in N s, N MB/s

# Columns that are missing, used twice, or of the wrong type.
$ lapse import fields.csv -o x.lapse --event item --action deed
! lapse: fields.csv:1: there is no column 'deed' for the action; the columns are: user, time, item, action, device, price
= 1
$ lapse import fields.csv -o x.lapse --event item --field colour
! lapse: fields.csv:1: there is no column 'colour' for the field; the columns are: user, time, item, action, device, price
= 1
$ lapse import fields.csv -o x.lapse --event item --field device --number device
! lapse: fields.csv:1:5: the column 'device' cannot be the number: it already has another role
= 1
$ lapse import fields.csv -o x.lapse --event item --number device
! lapse: fields.csv:2:5: 'phone' is not a number: expected a decimal such as 12.5; if it is missing, an empty field, NaN, NA or null
= 1
$ lapse import fields.csv -o x.lapse --event item --number device --bad-rows skip
| read       38 rows, 1.6 kB from fields.csv
| sequence   user, found by name
| time       time, found by name; ISO 8601
| event      item
| ignored    action, price
| skipped    35 malformed rows; first at fields.csv:2:5: 'phone' is not a number: expected a decimal such as 12.5; if it is missing, an empty field, NaN, NA or null
| events     3 events in 2 sequences, 2 event types
| fields     device (number)
| span       2026-01-05T09:31:00Z to 2026-01-08T10:00:00Z, 3.02 days
| wrote      x.lapse in N s, N MB/s

# Training with fields. Predicting the action requires an action column and a model that supports it.
$ lapse train fields.lapse -o m.safetensors --predict both --epochs 2 --dims 8 --context 16 --periods 4 --harmonics 2 \
  --batch 4 --seed 3 --threads 1 --no-eval --checkpoint none 2>&1 | grep -v '^epoch' | sed -E 's/epoch [0-9] of 2 with log-loss [0-9.]+/epoch N of 2 with log-loss N/'
| Data      fields.lapse: 38 events in 13 sequences, 2 event types
| Model     model attention, size base, task classify, target-time known, context
|           16, dims 8, dropout 0.3, gap-input on, when no, predict both,
|           field-dims 0, encoding mercer, periods 4, harmonics 2, period-min 1
|           minute, period-max 1.83 days, period-init geometric, periods-fixed no,
|           blocks 2, heads 2, projection linear, combine concatenate
| Training  learning-rate 0.002, schedule constant, beta1 0.9, beta2 0.98, l2 0,
|           clip 5, ema-decay 0, batch 4, epochs 2, patience 10, select log-loss,
|           windows all
| Run       split-by sequence, seed 3, device cpu, threads 1, shards 16,
|           checkpoint-every 30 seconds, resume no
| Size      base: --size large takes about 3.3 times the operations of a step
| saved        m.safetensors after N s; the best was epoch N of 2 with log-loss N (sum over event and action) on the validation split; more epochs (--epochs) may give a better one
$ lapse info m.safetensors --all | grep -E '^(predict|field)'
| predict               both
| fields                3
| field.0.name          action
| field.0.type          action
| field.0.dims          3
| field.1.name          device
| field.1.type          category
| field.1.dims          3
| field.2.name          price
| field.2.type          number
| field.2.dims          1
| field.2.mean          6.866071428571429
| field.2.deviation     3.4618340920113786
$ lapse train plain.lapse -o x.safetensors --predict action
! lapse: the action cannot be predicted, because the dataset has none: import it with --action COLUMN
= 1
$ lapse train fields.lapse -o x.safetensors --model markov --predict both
! lapse: the model 'markov' predicts events only; to predict the action, import the data with --event 'action'
= 2
$ lapse train fields.lapse -o x.safetensors --predict all
! lapse: --predict takes one of event, action, both, not 'all'
! lapse: see `lapse train --help`
= 2

# Scores of each target; the unit tests check the numbers.
$ lapse eval m.safetensors fields.lapse --split all | sed -E 's/[0-9]+\.[0-9]+/N/g'
| split        all: 25 events in 13 sequences
| target time  known: the model is told when the next event happens, and predicts which
| accuracy     N % (95 % interval N to N)
| log-loss     N nats per event (95 % interval N to N)
| macro-F1     N
|
| target       action
| split        all: 25 events in 13 sequences
| target time  known: the model is told when the next event happens, and predicts which
| accuracy     N % (95 % interval N to N)
| log-loss     N nats per event (95 % interval N to N)
| macro-F1     N
$ lapse eval m.safetensors fields.lapse --split all --bootstrap 0 --json | sed -E 's/[0-9]+\.[0-9e-]+/N/; /"(data|model)"/d'
| {
|   "target": "event",
|   "split": "all",
|   "target_time": "known",
|   "cases": 25,
|   "sequences": 13,
|   "accuracy": N,
|   "log_loss": N,
|   "macro_f1": N,
|   "action": {
|     "target": "action",
|     "split": "all",
|     "target_time": "known",
|     "cases": 25,
|     "sequences": 13,
|     "accuracy": N,
|     "log_loss": N,
|     "macro_f1": N
|   }
| }
$ lapse eval m.safetensors plain.lapse --split all
! lapse: the model sees the action 'action' of every event, and the dataset does not have it; import it with --action 'action'
= 1

# Predictions.
$ lapse predict m.safetensors fields_history.csv --at +1h --at +7d --top 1 | sed -E 's/[0-9]+\.[0-9] %/N %/g'
| target: event
| sequence  rank  at +1h          at +7d
| ann          1  cake    N %  tea     N %
|
| target: action
| sequence  rank  at +1h          at +7d
| ann          1  view    N %  view    N %
$ lapse predict m.safetensors fields_history.csv --at +1h --csv | cut -d, -f1-3,5- | sed -E 's/0\.[0-9]+$/N/' | sort
| ann,+1h,1767870000,action,1,view,N
| ann,+1h,1767870000,action,2,buy,N
| ann,+1h,1767870000,event,1,cake,N
| ann,+1h,1767870000,event,2,tea,N
| sequence,at,time,target,rank,name,probability
# A field that the model reads may be named once more.
$ lapse predict m.safetensors fields_history.csv --at +1h --csv >same.csv; \
  lapse predict m.safetensors fields_history.csv --at +1h --csv --field device --number price | cmp - same.csv
$ lapse predict m.safetensors fields_history.csv --at +1h --top 1 --json | sed -E 's/0\.[0-9]+/N/'
| {
|   "model": "m.safetensors",
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
|               "event": "cake",
|               "probability": N
|             }
|           ],
|           "top_actions": [
|             {
|               "action": "view",
|               "probability": N
|             }
|           ]
|         }
|       ]
|     }
|   ],
|   "skipped": []
| }
$ sed s/action/deed/ fields_history.csv > renamed.csv; lapse predict m.safetensors renamed.csv --at +1h
! lapse: renamed.csv:1: there is no column 'action' for the action; the columns are: user, time, item, deed, device, price
= 1
$ lapse predict m.safetensors renamed.csv --at +1h --action deed --top 1 | wc -l
| 7
$ cut -d, -f1-5 fields_history.csv | lapse predict m.safetensors - --at +1h
! lapse: standard input:1: there is no column 'price' for the number; the columns are: user, time, item, action, device
= 1
$ sed 's/view/steal/; s/,$/,cheap/' fields_history.csv > strange.csv; lapse predict m.safetensors strange.csv --at +1h
! lapse: strange.csv: 2 events have 1 value of 'action' that the model does not know: 'steal' (2); --unknown skip skips them
= 1
$ lapse predict m.safetensors strange.csv --at +1h --unknown skip --top 1 | wc -l
| 7
! lapse: strange.csv: 2 events have 1 value of 'action' that the model does not know: 'steal' (2); skipped
$ sed 's/12$/dear/' fields_history.csv > dear.csv; lapse predict m.safetensors dear.csv --at +1h
! lapse: dear.csv:4:6: 'dear' is not a number: expected a decimal such as 12.5; if it is missing, an empty field, NaN, NA or null
= 1
$ lapse train plain.lapse -o plain.safetensors --model markov --no-eval 2>/dev/null | wc -l
| 1
