# Metadata of datasets and models, with any file name.
$ lapse import events.csv -o events.lapse >/dev/null && lapse info events.lapse
| file             events.lapse (dataset)
| sequences        12
| events           96
| event_types      4
| first.time       2026-01-01T00:00:00Z
| last.time        2026-01-05T13:18:00Z
| span             4.55 days
| sequence.span    median 12.8 hours
| sequence.events  7 to 9, median 8
| gap.median       40 minutes
| gap.zero         0 % of events have the timestamp of the event before
| source           events.csv
| column.sequence  user
| column.time      time
| column.event     event
| time.unit        unix seconds
| delimiter        comma
| header           yes
| order            sequence by first appearance, then time; ties keep the order of the source
| session_gap      none
| deduplicate      none
| min_events       1
| min_count        1
| min_rounds       once
| rows.read        96
$ lapse info events.lapse --event-types | tail -5
| event type  events  fraction
| view            48   50.00 %
| cart            27   28.12 %
| buy             15   15.62 %
| rate             6    6.25 %
$ lapse info events.lapse --json
| {
|   "file": "events.lapse",
|   "type": "dataset",
|   "properties": {
|     "sequences": "12",
|     "events": "96",
|     "event_types": "4",
|     "first.time": "2026-01-01T00:00:00Z",
|     "last.time": "2026-01-05T13:18:00Z",
|     "span": "4.55 days",
|     "sequence.span": "median 12.8 hours",
|     "sequence.events": "7 to 9, median 8",
|     "gap.median": "40 minutes",
|     "gap.zero": "0 % of events have the timestamp of the event before",
|     "source": "events.csv",
|     "column.sequence": "user",
|     "column.time": "time",
|     "column.event": "event",
|     "time.unit": "unix seconds",
|     "delimiter": "comma",
|     "header": "yes",
|     "order": "sequence by first appearance, then time; ties keep the order of the source",
|     "session_gap": "none",
|     "deduplicate": "none",
|     "min_events": "1",
|     "min_count": "1",
|     "min_rounds": "once",
|     "rows.read": "96"
|   }
| }
$ mv events.lapse data.bin; lapse train data.bin -o model.bin --model markov --order 1 >/dev/null 2>&1; lapse info model.bin --all | grep -E "^(file|task|model|split|column)"
| file                  model.bin (model)
| model                 markov
| task                  classify
| split                 sequence
| column.sequence       user
| column.time           time
| column.event          event
$ lapse info model.bin --event-types | tail -5
| event type
| view
| cart
| buy
| rate
$ lapse info model.bin --json --event-types | tail -18 | sed -E 's/"commit": "([0-9a-f]{12}\+?|unknown)"/"commit": "C"/'
|     "version": "0.1.0",
|     "commit": "C"
|   },
|   "event_types": [
|     {
|       "name": "view"
|     },
|     {
|       "name": "cart"
|     },
|     {
|       "name": "buy"
|     },
|     {
|       "name": "rate"
|     }
|   ]
| }

# Other files and truncated files are errors.
$ lapse info nothing
! lapse: nothing: cannot open: No such file or directory
= 1
$ lapse info .
! lapse: .: cannot read: Is a directory
= 1
$ : >empty; lapse info empty
! lapse: empty: the file is empty: it must have a header and rows
= 1
$ lapse info events.csv
| file             events.csv (events in text)
| sequences        12
| events           96
| event_types      4
| first.time       2026-01-01T00:00:00Z
| last.time        2026-01-05T13:18:00Z
| span             4.55 days
| sequence.span    median 12.8 hours
| sequence.events  7 to 9, median 8
| gap.median       40 minutes
| gap.zero         0 % of events have the timestamp of the event before
| source           events.csv
| column.sequence  user
| column.time      time
| column.event     event
| time.unit        unix seconds
| delimiter        comma
| header           yes
| order            sequence by first appearance, then time; ties keep the order of the source
| session_gap      none
| deduplicate      none
| min_events       1
| min_count        1
| min_rounds       once
| rows.read        96
! lapse: events.csv: columns: sequence 'user', time 'time', event 'event'
$ head -c 100 data.bin >short.bin; lapse info short.bin
! lapse: short.bin: the file is truncated: it has 100 of 3264 bytes
= 1
$ head -c 100 model.bin >short.bin; lapse info short.bin
! lapse: short.bin: this is not a whole Lapse model: its header is cut off
= 1
$ { printf '\1\0\0\0\0\0\0\0{'; } >brace.bin; lapse info brace.bin
! lapse: brace.bin: this is not a whole Lapse model: it does not begin with a safetensors header
= 1

# A full disk is a failure.
$ lapse info data.bin >/dev/full
! lapse: cannot write to standard output: No space left on device
= 1

# The card of a model: history as a chart and a table, scores beside baselines.
$ lapse train data.bin -o net.bin --epochs 3 --dims 8 --batch 4 --seed 3 --threads 1 >/dev/null 2>&1; lapse info net.bin --all --history | sed -n '/^score.epoch/,$p' \
  | sed -E 's/^(commit +).*/\1C/; /\|/s/[0-9]+\.[0-9]+/NNNNNN/; /\|/s/[.o*]+/o/; s/(attention.*) +-?[0-9.]+ +[0-9.]+ %/\1 N N %/; /^ +[0-9]/s/[0-9]\.[0-9]{4}/N/g' | sed '/|/d'
| score.epoch           3
| run.status            complete
| version               0.1.0
| commit                C
|
|           +---
|            epoch 1 to 3. o validation log-loss, * its best, . training loss
|
| epoch    loss  log-loss  accuracy
|     1  N    N    N
|     2  N    N    N
|     3  N    N    N  best
|
|                   log-loss  accuracy
| attention, valid    N N %
| attention, test     N N %
| majority, test      1.3720    37.5 %
| markov-1, test      0.6079    75.0 %
| markov-2, test      0.4973    75.0 %
| markov-3, test      0.4453    75.0 %
| test split: 8 events in 1 sequence; intervals are 95 % bootstrap intervals over sequences
$ lapse info net.bin | sed -n '1,/^settings/p' | sed -E 's/^(made by +).*/\1V/'
| file      net.bin (model)
| model     attention, 2 blocks, 2 heads, 8 dims, sees the last 8 events
| time      mercer, 16 periods, from 4 minutes to 8.37 days, 5 harmonics, gaps as an input
| predicts  which of 4 event types comes next
| data      events.csv, 12 sequences, 96 events, 78 train, 9 valid, 9 test, split by sequence
| training  complete, parameters of epoch 3, learning rate 0.002, batches of 4 sequences, seed 3
| made by   V
| settings  --all lists every one by its key
$ lapse info model.bin | sed -E 's/^(made by +).*/\1V/'
| file      model.bin (model)
| model     markov, 1 event before
| predicts  which of 4 event types comes next
| data      events.csv, 12 sequences, 96 events, 82 train, 7 valid, 7 test, split by sequence
| training  seed 1
| made by   V
| settings  --all lists every one by its key
$ lapse info net.bin --all | grep -E '^run'
| run.status            complete
$ timeout --foreground --preserve-status -s INT 2 lapse train data.bin -o cut.bin --epochs 100000 --patience 100000 --dims 8 --batch 4 --threads 1 >/dev/null 2>&1; \
  lapse info cut.bin --all | grep -E '^run'
| run.status            stopped
$ lapse info net.bin --all | grep -E '^(dataset|source|version)' | sed -E 's/^(dataset.fingerprint +).*/\1F/'
| dataset.fingerprint   F
| source                events.csv
| dataset.sequences     12
| dataset.events        96
| dataset.events.train  78
| dataset.events.valid  9
| dataset.events.test   9
| version               0.1.0
$ lapse info net.bin --json | sed -n '/"history"/,/^    }/p' | sed -E 's/: -?[0-9.]+/: N/'
|   "history": [
|     {
|       "epoch": N,
|       "loss": N,
|       "valid": {
|         "log_loss": N,
|         "accuracy": N
|       },
|       "score": N,
|       "best": false
|     },
$ lapse info net.bin | awk '/\|/ || /\+-/' | wc -l
| 9
