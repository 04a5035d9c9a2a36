# Every verb that takes events takes a dataset file and text alike, told apart by content.
$ lapse import events.csv -o events.lapse >/dev/null; cp events.lapse data.csv; cp events.csv text.lapse
$ sed -i 's/user/customer/; s/event$/what/' text.lapse
$ lapse train events.lapse -o d.st --model markov --order 1 --seed 3 2>/dev/null | tail -n +2 >d.out
$ lapse train events.csv -o t.st --model markov --order 1 --seed 3 2>log | tail -n +2 | cmp - d.out; head -2 log; cmp d.st t.st
| lapse: events.csv: columns: sequence 'user', time 'time', event 'event'
| Data      events.csv: 96 events in 12 sequences, 4 event types
$ gzip -k events.csv; lapse train events.csv.gz -o z.st --model markov --order 1 --no-eval 2>&1 >/dev/null | sed -n 1p
| lapse: events.csv.gz: columns: sequence 'user', time 'time', event 'event'
$ lapse train - -o p.st --model markov --order 1 --seed 3 --no-eval <events.csv 2>&1 >/dev/null | sed -n 1,2p
| lapse: standard input: columns: sequence 'user', time 'time', event 'event'
| Data      -: 96 events in 12 sequences, 4 event types
$ cat events.csv | lapse train /dev/stdin -o p.st --model markov --order 1 --seed 3 --no-eval 2>/dev/null | grep -c saved
| 1
$ lapse train text.lapse -o x.st --sequence customer --time time --event what --model majority 2>&1 >/dev/null | sed -n 1p
| lapse: text.lapse: columns: sequence 'customer', time 'time', event 'what'
$ lapse eval d.st events.lapse --bootstrap 0 >d.out; lapse eval d.st events.csv --bootstrap 0 | cmp - d.out
$ lapse eval d.st text.lapse --event what --sequence customer --bootstrap 0 | cmp - d.out
! lapse: text.lapse: columns: sequence 'customer', time 'time', event 'what'
$ lapse eval d.st data.csv --bootstrap 0 | cmp - d.out
$ lapse check events.lapse | tail -n +2 >d.out; lapse check events.csv | tail -n +2 | cmp - d.out
!   role      column  sample      runner-up  why
!   sequence  user    ann                    named like a user; 12 values in 96 rows
!   time      time    1767225600             named like a time; unix seconds, sorted
!   event     event   view                   named like an event; 4 values in 96 rows
$ lapse pretrain events.lapse -o d.vec --dims 4 --epochs 1 >/dev/null 2>&1; lapse pretrain events.csv -o t.vec --dims 4 --epochs 1 2>&1 >/dev/null | sed -n 1p; cmp d.vec t.vec
| lapse: events.csv: columns: sequence 'user', time 'time', event 'event'
$ lapse info events.csv 2>/dev/null | head -4
| file             events.csv (events in text)
| sequences        12
| events           96
| event_types      4
$ lapse info events.csv --json 2>/dev/null | sed -n 2,5p
|   "file": "events.csv",
|   "type": "events in text",
|   "properties": {
|     "sequences": "12",
$ lapse predict d.st events.lapse --at +1h >d.out; lapse predict d.st events.csv --at +1h | cmp - d.out

# The options of `lapse import` for text are those of every verb.
$ lapse train fields.csv -o f.st --event item --action action --field device --number price --predict both --epochs 1 --dims 8 \
  --checkpoint none --no-eval >/dev/null 2>log; head -2 log
| lapse: fields.csv: columns: sequence 'user', time 'time', event 'item', action 'action', category 'device', number 'price'
| Data      fields.csv: 38 events in 13 sequences, 2 event types
$ lapse import fields.csv -o fields.lapse --event item --action action --field device --number price >/dev/null
$ lapse eval f.st fields.lapse --bootstrap 0 >f.out; lapse eval f.st fields.csv --bootstrap 0 | cmp - f.out
$ lapse predict f.st fields.lapse --at +1h --csv >f.out; lapse predict f.st fields.csv --at +1h --csv | cmp - f.out
$ lapse info fields.csv --event item --number price --field device --min-events 3 --min-count 2 --deduplicate exact 2>/dev/null | grep -E '^(events|field|min|dedup)'
| events           36
| field.1          device (category): 3 distinct values
| field.2          price (number): mean 7.03571, standard deviation 3.52954, 1 missing
| deduplicate      exact
| min_events       3
| min_count        2
| min_rounds       once
$ lapse check fields.csv --event item --split-column device
! lapse: fields.csv:2:5: 'phone' is not a split: expected train, valid or test
= 1
$ lapse train bad.csv -o x.st --model majority --no-eval
! lapse: bad.csv:3:2: 'yesterday' is not a time in unix seconds
= 1
$ lapse train bad.csv -o x.st --model majority --no-eval --bad-rows skip 2>&1 >/dev/null | sed -n 1,3p
| lapse: skipped 2 malformed rows; the first:
| lapse: bad.csv:3:2: 'yesterday' is not a time in unix seconds
| lapse: bad.csv: columns: sequence 'user', time 'time', event 'event'
$ for verb in import train eval check info pretrain predict; do lapse $verb --help all | grep -cE '^  --(sequence|time|event|action|field|number|split-column|time-unit|delimiter|no-header|bad-rows|deduplicate|min-events|min-count|min-rounds) '; done | uniq
| 15

# The fields of a dataset may have another order than those of the model.
$ sed '1s/$/,shop/; 2,$s/$/,x/' fields.csv >shop.csv; lapse import shop.csv -o swapped.lapse --event item --number price --field shop --field device --action action >/dev/null; \
  lapse predict f.st swapped.lapse --at +1h --csv | cmp - f.out

# A dataset has its columns already; a model is no events; a dataset that lacks a field of the model says which.
$ lapse train events.lapse -o x.st --event item
! lapse: --event is for events in text, which events.lapse is not
= 2
$ lapse predict d.st events.lapse --at +1h --min-events 3
! lapse: --min-events is for events in text, which events.lapse is not
= 2
$ lapse info d.st --event item
! lapse: --event is for events in text, which d.st is not
= 2
$ lapse check d.st
! lapse: d.st: this is a safetensors file (a model or item vectors), not events
= 1
$ lapse import fields.csv -o plain.lapse --event item >/dev/null; lapse predict f.st plain.lapse --at +1h
! lapse: the model sees the action 'action' of every event, and the dataset does not have it; import it with --action 'action'
= 1
$ lapse predict d.st fields.lapse --at +1h
! lapse: fields.lapse: 38 events are of 2 event types that the model does not know: 'tea' (25), 'cake' (13); --unknown skip skips them
= 1

# A model that was trained with a split column finds it again.
$ awk -F, 'NR == 1 { print $0 ",part" } NR > 1 { print $0 "," (NR % 9 == 0 ? "test" : NR % 7 == 0 ? "valid" : "train") }' events.csv >parts.csv
$ lapse train parts.csv -o s.st --model markov --order 1 --split-column part 2>&1 | grep -E 'columns|split'
| lapse: parts.csv: columns: sequence 'user', time 'time', event 'event', split 'part'
| Run       split-by column, seed 1, threads 2
| split        test: 9 events in 6 sequences
$ lapse eval s.st parts.csv --bootstrap 0 | head -1
| split        test: 9 events in 6 sequences
$ lapse predict s.st history.csv --at +1h --top 1
| sequence  rank  at +1h
| max          1  buy     64.2 %
| nora         1  rate    50.9 %
