# A model of counts, whose predictions are exact on every machine.
$ lapse import events.csv -o events.lapse >/dev/null
$ lapse train events.lapse -o m.safetensors --model markov --order 1 --seed 3 >/dev/null 2>&1

# Query times: relative to the last event, ISO 8601, Unix seconds; one column each.
$ lapse predict m.safetensors history.csv --at +3d --top 2
| sequence  rank  at +3d
| max          1  buy     53.2 %
|              2  view    44.9 %
| nora         1  view    49.2 %
|              2  rate    45.2 %
$ lapse predict m.safetensors history.csv --at +1h --at 2026-03-01T12:00:00+01:00 --at 1772362800.5
| sequence  rank  at +1h          at 2026-03-01T12:00:00+01:00          at 1772362800.5
| max          1  buy     53.2 %  buy                           53.2 %  buy              53.2 %
|              2  view    44.9 %  view                          44.9 %  view             44.9 %
|              3  cart     1.6 %  cart                           1.6 %  cart              1.6 %
|              4  rate     0.3 %  rate                           0.3 %  rate              0.3 %
| nora         1  view    49.2 %  view                          49.2 %  view             49.2 %
|              2  rate    45.2 %  rate                          45.2 %  rate             45.2 %
|              3  cart     3.7 %  cart                           3.7 %  cart              3.7 %
|              4  buy      1.9 %  buy                            1.9 %  buy               1.9 %
$ lapse predict m.safetensors - --at +1h --top 1 <history.csv
| sequence  rank  at +1h
| max          1  buy     53.2 %
| nora         1  view    49.2 %
$ lapse predict m.safetensors history.csv --at +1h --top 1 --csv
| sequence,at,time,timestamp,rank,event,probability
| max,+1h,1769945400,2026-02-01T11:30:00Z,1,buy,0.531746032
| nora,+1h,1770027300,2026-02-02T10:15:00Z,1,view,0.492283951
$ lapse predict m.safetensors history.csv --at +1h --top 0 --csv | wc -l
| 9
$ lapse predict m.safetensors history.csv --at +1h --at 2026-03-01 --top 2 --json
| {
|   "model": "m.safetensors",
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
|               "event": "buy",
|               "probability": 0.531746032
|             },
|             {
|               "event": "view",
|               "probability": 0.449074074
|             }
|           ]
|         },
|         {
|           "at": "2026-03-01",
|           "time": 1772323200,
|           "timestamp": "2026-03-01T00:00:00Z",
|           "top": [
|             {
|               "event": "buy",
|               "probability": 0.531746032
|             },
|             {
|               "event": "view",
|               "probability": 0.449074074
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
|               "event": "view",
|               "probability": 0.492283951
|             },
|             {
|               "event": "rate",
|               "probability": 0.452160494
|             }
|           ]
|         },
|         {
|           "at": "2026-03-01",
|           "time": 1772323200,
|           "timestamp": "2026-03-01T00:00:00Z",
|           "top": [
|             {
|               "event": "view",
|               "probability": 0.492283951
|             },
|             {
|               "event": "rate",
|               "probability": 0.452160494
|             }
|           ]
|         }
|       ]
|     }
|   ],
|   "skipped": []
| }
$ lapse predict m.safetensors history.csv --at +0s --top 99 | wc -l
| 9

# A history that ends after a query time is reported and skipped at that time.
$ lapse predict m.safetensors history.csv --at 2026-02-02T00:00:00Z --top 1
| sequence  rank  at 2026-02-02T00:00:00Z
| max          1  buy                      53.2 %
! lapse: --at 2026-02-02T00:00:00Z: skipped 1 history that ends after this time, the first 'nora', whose last event is at 2026-02-02T09:15:00Z
$ lapse predict m.safetensors history.csv --at 2026-02-02T00:00:00Z --at +1h --top 1
| sequence  rank  at 2026-02-02T00:00:00Z          at +1h
| max          1  buy                      53.2 %  buy     53.2 %
| nora         1                                   view    49.2 %
! lapse: --at 2026-02-02T00:00:00Z: skipped 1 history that ends after this time, the first 'nora', whose last event is at 2026-02-02T09:15:00Z
$ lapse predict m.safetensors history.csv --at 2026-02-02 --at 1 --top 1 --json
| {
|   "model": "m.safetensors",
|   "history": "history.csv",
|   "sequences": [
|     {
|       "sequence": "max",
|       "last_time": 1769941800,
|       "predictions": [
|         {
|           "at": "2026-02-02",
|           "time": 1769990400,
|           "timestamp": "2026-02-02T00:00:00Z",
|           "top": [
|             {
|               "event": "buy",
|               "probability": 0.531746032
|             }
|           ]
|         }
|       ]
|     },
|     {
|       "sequence": "nora",
|       "last_time": 1770023700,
|       "predictions": []
|     }
|   ],
|   "skipped": [
|     {
|       "at": "2026-02-02",
|       "reason": "the history ends after this time",
|       "histories": 1,
|       "first": "nora"
|     },
|     {
|       "at": "1",
|       "reason": "the history ends after this time",
|       "histories": 2,
|       "first": "max"
|     }
|   ]
| }
! lapse: --at 2026-02-02: skipped 1 history that ends after this time, the first 'nora', whose last event is at 2026-02-02T09:15:00Z
! lapse: --at 1: skipped 2 histories that end after this time, the first 'max', whose last event is at 2026-02-01T10:30:00Z
$ lapse predict m.safetensors history.csv --at 2026-02-02 --at 1 --csv --top 1
| sequence,at,time,timestamp,rank,event,probability
| max,2026-02-02,1769990400,2026-02-02T00:00:00Z,1,buy,0.531746032
! lapse: --at 2026-02-02: skipped 1 history that ends after this time, the first 'nora', whose last event is at 2026-02-02T09:15:00Z
! lapse: --at 1: skipped 2 histories that end after this time, the first 'max', whose last event is at 2026-02-01T10:30:00Z
$ lapse predict m.safetensors history.csv --at 1 --top 1
! lapse: --at 1: skipped 2 histories that end after this time, the first 'max', whose last event is at 2026-02-01T10:30:00Z
! lapse: no prediction: every history ends after the query time; the histories end from 2026-02-01T10:30:00Z to 2026-02-02T09:15:00Z. --at +1h asks for the time after each history's last event
= 1

# The current time.
$ printf 'user,time,event\na,1,view\nb,99999999999,view\n' >future.csv; lapse predict m.safetensors future.csv --at now --top 1
| sequence  rank  at now
| a            1  cart    61.4 %
! lapse: --at now: skipped 1 history that ends after this time, the first 'b', whose last event is at 5138-11-16T09:46:39Z
$ before=$(date +%s); at=$(lapse predict m.safetensors future.csv --at now --top 1 --csv 2>/dev/null | awk -F, 'NR == 2 { print $3 }'); \
  [ "$before" -le "$at" ] && [ "$at" -le "$(date +%s)" ] && echo yes
| yes

# A sweep: query times after the last event, spaced evenly in log time, one row each.
$ lapse predict m.safetensors history.csv --at 1h..30d/5 --top 2
| sequence      at  rank 1          rank 2
| max          +1h  buy     53.2 %  view    44.9 %
|           +5.18h  buy     53.2 %  view    44.9 %
|           +1.12d  buy     53.2 %  view    44.9 %
|           +5.79d  buy     53.2 %  view    44.9 %
|             +30d  buy     53.2 %  view    44.9 %
| nora         +1h  view    49.2 %  rate    45.2 %
|           +5.18h  view    49.2 %  rate    45.2 %
|           +1.12d  view    49.2 %  rate    45.2 %
|           +5.79d  view    49.2 %  rate    45.2 %
|             +30d  view    49.2 %  rate    45.2 %
$ lapse predict m.safetensors history.csv --at +1h..+64h/7 --top 1 --csv
| sequence,at,time,timestamp,rank,event,probability
| max,+1h,1769945400,2026-02-01T11:30:00Z,1,buy,0.531746032
| max,+2h,1769949000,2026-02-01T12:30:00Z,1,buy,0.531746032
| max,+4h,1769956200,2026-02-01T14:30:00Z,1,buy,0.531746032
| max,+8h,1769970600,2026-02-01T18:30:00Z,1,buy,0.531746032
| max,+16h,1769999400,2026-02-02T02:30:00Z,1,buy,0.531746032
| max,+1.33d,1770056712,2026-02-02T18:25:12Z,1,buy,0.531746032
| max,+64h,1770172200,2026-02-04T02:30:00Z,1,buy,0.531746032
| nora,+1h,1770027300,2026-02-02T10:15:00Z,1,view,0.492283951
| nora,+2h,1770030900,2026-02-02T11:15:00Z,1,view,0.492283951
| nora,+4h,1770038100,2026-02-02T13:15:00Z,1,view,0.492283951
| nora,+8h,1770052500,2026-02-02T17:15:00Z,1,view,0.492283951
| nora,+16h,1770081300,2026-02-03T01:15:00Z,1,view,0.492283951
| nora,+1.33d,1770138612,2026-02-03T17:10:12Z,1,view,0.492283951
| nora,+64h,1770254100,2026-02-05T01:15:00Z,1,view,0.492283951
$ lapse predict m.safetensors history.csv --at 1m..61s/3 --at +2m --top 1
| sequence      at  rank 1
| max          +1m  buy     53.2 %
|           +1.01m  buy     53.2 %
|             +61s  buy     53.2 %
|              +2m  buy     53.2 %
| nora         +1m  view    49.2 %
|           +1.01m  view    49.2 %
|             +61s  view    49.2 %
|              +2m  view    49.2 %
$ lapse predict m.safetensors history.csv --at 5ms..1y/1000 --top 1 --csv | awk -F, 'NR > 1 && $1 == "max" { n++; if ($3 <= last) print "not increasing", $0; last = $3 } END { print n }'
| 1000
$ for at in +1.41h +33.9m; do lapse predict m.safetensors history.csv --at $at --top 1 --csv | sed -n 2p; done; lapse predict m.safetensors history.csv --at 20m..2h/3 --top 1 --csv | sed -n 2,4p
| max,+1.41h,1769946876,2026-02-01T11:54:36Z,1,buy,0.531746032
| max,+33.9m,1769943834,2026-02-01T11:03:54Z,1,buy,0.531746032
| max,+20m,1769943000,2026-02-01T10:50:00Z,1,buy,0.531746032
| max,+49m,1769944740,2026-02-01T11:19:00Z,1,buy,0.531746032
| max,+2h,1769949000,2026-02-01T12:30:00Z,1,buy,0.531746032
$ for at in 30d 1h..30d 1h..30d/1 1h..30d/1001 1h..30d/x 1h..30d/ 0s..1h/5 1h..1h/5 2h..1h/5 2026-01-01..2026-02-01/3 ../3 1h../3 1h..2h/3/4 -1h..2h/3 later; do \
  lapse predict m.safetensors history.csv --at=$at; done
! lapse: --at 30d: this is a duration; +30d is that long after the last event of each sequence
! lapse: see `lapse predict --help`
! lapse: --at 1h..30d: the number of times is missing: a sweep is FROM..TO/N, such as 1h..30d/20
! lapse: see `lapse predict --help`
! lapse: --at 1h..30d/1: a sweep has 2 to 1000 times, not '1'
! lapse: see `lapse predict --help`
! lapse: --at 1h..30d/1001: a sweep has 2 to 1000 times, not '1001'
! lapse: see `lapse predict --help`
! lapse: --at 1h..30d/x: a sweep has 2 to 1000 times, not 'x'
! lapse: see `lapse predict --help`
! lapse: --at 1h..30d/: a sweep has 2 to 1000 times, not ''
! lapse: see `lapse predict --help`
! lapse: --at 0s..1h/5: a sweep is spaced evenly in log time and cannot begin at 0; begin at 1s, for instance
! lapse: see `lapse predict --help`
! lapse: --at 1h..1h/5: a sweep goes from a shorter to a longer duration, but 1h is not shorter than 1h
! lapse: see `lapse predict --help`
! lapse: --at 2h..1h/5: a sweep goes from a shorter to a longer duration, but 2h is not shorter than 1h
! lapse: see `lapse predict --help`
! lapse: --at 2026-01-01..2026-02-01/3: '2026-01-01' is not a duration: a sweep is FROM..TO/N, two durations after the last event and a number of times, such as 1h..30d/20
! lapse: see `lapse predict --help`
! lapse: --at ../3: '' is not a duration: a sweep is FROM..TO/N, two durations after the last event and a number of times, such as 1h..30d/20
! lapse: see `lapse predict --help`
! lapse: --at 1h../3: '' is not a duration: a sweep is FROM..TO/N, two durations after the last event and a number of times, such as 1h..30d/20
! lapse: see `lapse predict --help`
! lapse: --at 1h..2h/3/4: '2h/3' is not a duration: a sweep is FROM..TO/N, two durations after the last event and a number of times, such as 1h..30d/20
! lapse: see `lapse predict --help`
! lapse: --at -1h..2h/3: '-1h' is not a duration: a sweep is FROM..TO/N, two durations after the last event and a number of times, such as 1h..30d/20
! lapse: see `lapse predict --help`
! lapse: --at later: 'later' is not a time: give unix seconds, or ISO 8601 such as 2026-11-15T12:00:00Z
! lapse: see `lapse predict --help`
= 2

# --output writes a whole file or none, and no input.
$ lapse predict m.safetensors history.csv --at +1h --top 1 -o out.txt; cat out.txt
| sequence  rank  at +1h
| max          1  buy     53.2 %
| nora         1  view    49.2 %
$ lapse predict m.safetensors history.csv --at +1h --top 1 --csv -o out.csv; lapse predict m.safetensors history.csv --at +1h --top 1 --csv | cmp - out.csv
$ lapse predict m.safetensors history.csv --at +1h --top 1 --json -o out.json; lapse predict m.safetensors history.csv --at +1h --top 1 --json | cmp - out.json
$ lapse predict m.safetensors history.csv --at +1h --top 1 --csv -o - | cmp - out.csv
$ lapse predict m.safetensors strange.csv --at +1h -o out.txt; cat out.txt
| sequence  rank  at +1h
| max          1  buy     53.2 %
| nora         1  view    49.2 %
! lapse: strange.csv: 3 events are of 2 event types that the model does not know: 'wave' (2), 'nod' (1); --unknown skip skips them
$ lapse predict m.safetensors history.csv --at +1h -o history.csv
! lapse: --output history.csv would overwrite HISTORY history.csv
! lapse: see `lapse predict --help`
= 2
$ lapse predict m.safetensors history.csv --at +1h -o ./m.safetensors
! lapse: --output ./m.safetensors would overwrite MODEL m.safetensors
! lapse: see `lapse predict --help`
= 2
$ lapse predict m.safetensors - --at +1h -o history.csv <history.csv
! lapse: --output history.csv would overwrite HISTORY /dev/stdin
! lapse: see `lapse predict --help`
= 2
$ lapse predict m.safetensors history.csv --at +1h -o no/such/folder/out
! lapse: no/such/folder/out: cannot write: No such file or directory
= 1
$ lapse predict m.safetensors history.csv --at +1h -o /dev/full
! lapse: /dev/full: cannot write: No space left on device
= 1
$ ls out*
| out.csv
| out.json
| out.txt

# Events that the model does not know.
$ lapse predict m.safetensors strange.csv --at +1h
! lapse: strange.csv: 3 events are of 2 event types that the model does not know: 'wave' (2), 'nod' (1); --unknown skip skips them
= 1
$ lapse predict m.safetensors strange.csv --at +1h --unknown skip --top 1
| sequence  rank  at +1h
| max          1  buy     53.2 %
! lapse: strange.csv: 3 events are of 2 event types that the model does not know: 'wave' (2), 'nod' (1); skipped
! lapse: skipped 1 history without an event that the model knows, the first 'olaf'
$ lapse predict m.safetensors strange.csv --at +1h --unknown skip --top 1 --json
| {
|   "model": "m.safetensors",
|   "history": "strange.csv",
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
|               "event": "buy",
|               "probability": 0.531746032
|             }
|           ]
|         }
|       ]
|     },
|     {
|       "sequence": "olaf",
|       "last_time": 1769942400,
|       "predictions": []
|     }
|   ],
|   "skipped": []
| }
! lapse: strange.csv: 3 events are of 2 event types that the model does not know: 'wave' (2), 'nod' (1); skipped
! lapse: skipped 1 history without an event that the model knows, the first 'olaf'

# Without any event that the model knows there is no prediction, and no empty table.
$ printf 'user,time,event\nolaf,1769941800,wave\n' >waves.csv; lapse predict m.safetensors waves.csv --at +1h --unknown skip --csv -o waves.out
! lapse: waves.csv: 1 event is of 1 event type that the model does not know: 'wave' (1); skipped
! lapse: no prediction: no history has an event that the model knows
= 1
$ ls waves.out
! ls: cannot access 'waves.out': No such file or directory
= 2

# Columns: as given, else those of the training data if the file has them, else detected by name.
$ sed '1s/user/customer/; 1s/event/item/' history.csv >other.csv; lapse predict m.safetensors other.csv --at +1h --top 1
| sequence  rank  at +1h
| max          1  buy     53.2 %
| nora         1  view    49.2 %
! lapse: other.csv: columns: sequence 'customer', time 'time', event 'item'
$ sed '1s/user/customer/; s/$/,x/' history.csv | sed '1s/x$/item/' >more.csv; lapse predict m.safetensors more.csv --at +1h --top 1
| sequence  rank  at +1h
| max          1  buy     53.2 %
| nora         1  view    49.2 %
! lapse: more.csv: columns: sequence 'customer', time 'time', event 'event'
$ lapse predict m.safetensors renamed.csv --at +1h --top 1
| sequence  rank  at +1h
| max          1  buy     53.2 %
! lapse: renamed.csv: columns: sequence 'customer', time 'when', event 'what'
$ lapse predict m.safetensors renamed.csv --at +1h --top 1 --sequence customer --time when --event what
| sequence  rank  at +1h
| max          1  buy     53.2 %
! lapse: renamed.csv: columns: sequence 'customer', time 'when', event 'what'
$ tail -n +2 history.csv | lapse predict m.safetensors - --at +1h --top 1 --no-header --sequence 1 --time 2 --event 3
| sequence  rank  at +1h
| max          1  buy     53.2 %
| nora         1  view    49.2 %
! lapse: standard input: columns: sequence '1', time '2', event '3'

# Malformed rows.
$ lapse predict m.safetensors bad.csv --at +1h
! lapse: bad.csv:3:2: 'yesterday' is not a time in unix seconds
= 1
$ lapse predict m.safetensors bad.csv --at +1h --top 1 --bad-rows skip
| sequence  rank  at +1h
| ann          1  view    49.2 %
| bob          1  buy     53.2 %
! lapse: skipped 2 malformed rows; the first:
! lapse: bad.csv:3:2: 'yesterday' is not a time in unix seconds
$ lapse predict nothing.safetensors history.csv --at +1h
! lapse: nothing.safetensors: cannot open: No such file or directory
= 1
$ lapse predict history.csv history.csv --at +1h
! lapse: history.csv: this is not a whole Lapse model: it does not begin with a safetensors header
= 1
$ lapse predict m.safetensors nothing.csv --at +1h
! lapse: nothing.csv: cannot open: No such file or directory
= 1

# Names with special characters are escaped for the output format.
$ printf 'user,time,event\n"a ""b"", c",1,view\n"x\x01y",1,view\n"Zo\xc3\xab",1,view\n' >names.csv
$ lapse predict m.safetensors names.csv --at +1h --top 1 --csv | LC_ALL=C cat -v
| sequence,at,time,timestamp,rank,event,probability
| "a ""b"", c",+1h,3601,1970-01-01T01:00:01Z,1,cart,0.614035088
| x^Ay,+1h,3601,1970-01-01T01:00:01Z,1,cart,0.614035088
| ZoM-CM-+,+1h,3601,1970-01-01T01:00:01Z,1,cart,0.614035088
$ printf 'user,time,event\n=1+1,1,view\n+1,1,view\n-1,1,view\n@x,1,view\n\tx,1,view\n"=a,""b",1,view\nx=1,1,view\n' >formulas.csv
$ lapse predict m.safetensors formulas.csv --at 3601 --top 1 --csv-safe | cut -d, -f1,2 | LC_ALL=C cat -T
| sequence,at
| '=1+1,3601
| '+1,3601
| '-1,3601
| '@x,3601
| '^Ix,3601
| "'=a,""b"
| x=1,3601
$ lapse predict m.safetensors formulas.csv --at +1h --top 1 --csv-safe | sed -n '2,3p'
| '=1+1,'+1h,3601,1970-01-01T01:00:01Z,1,cart,0.614035088
| '+1,'+1h,3601,1970-01-01T01:00:01Z,1,cart,0.614035088
$ lapse predict m.safetensors formulas.csv --at 3601 --top 1 --csv | sed -n 2p
| =1+1,3601,3601,1970-01-01T01:00:01Z,1,cart,0.614035088
$ lapse predict m.safetensors names.csv --at +1h --top 1 --json | grep '"sequence"'
|       "sequence": "a \"b\", c",
|       "sequence": "x\u0001y",
|       "sequence": "Zoë",
$ lapse predict m.safetensors names.csv --at +1h --top 1 | LC_ALL=C cat -v
| sequence  rank  at +1h
| a "b", c     1  cart    61.4 %
| x?y          1  cart    61.4 %
| ZoM-CM-+          1  cart    61.4 %

# A recommender: a baseline, whose predictions are exact. --unseen excludes items of the history.
$ lapse train events.lapse -o r.safetensors --model popularity --task recommend --seed 3 >/dev/null 2>&1
$ lapse predict r.safetensors history.csv --at +1d --top 2
| sequence  rank  at +1d
| max          1  view    53.9 %
|              2  cart    25.0 %
| nora         1  view    53.9 %
|              2  cart    25.0 %
$ lapse predict r.safetensors history.csv --at +1d --top 3 --unseen --csv
| sequence,at,time,timestamp,rank,item,score,probability
| max,+1d,1770028200,2026-02-02T10:30:00Z,1,buy,-1.93283808,0.144736842
| max,+1d,1770028200,2026-02-02T10:30:00Z,2,rate,-2.72129536,0.0657894737
| nora,+1d,1770110100,2026-02-03T09:15:00Z,1,rate,-2.72129536,0.0657894737
$ lapse predict r.safetensors history.csv --at +1d --top 1 --unseen --json
| {
|   "model": "r.safetensors",
|   "history": "history.csv",
|   "sequences": [
|     {
|       "sequence": "max",
|       "last_time": 1769941800,
|       "predictions": [
|         {
|           "at": "+1d",
|           "time": 1770028200,
|           "timestamp": "2026-02-02T10:30:00Z",
|           "top": [
|             {
|               "item": "buy",
|               "score": -1.93283808,
|               "probability": 0.144736842
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
|           "at": "+1d",
|           "time": 1770110100,
|           "timestamp": "2026-02-03T09:15:00Z",
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

# The speed is the events over the seconds of the same line.
$ lapse simulate --sequences 600 -o many.csv >/dev/null; lapse import many.csv -o many.lapse --event action >/dev/null; \
  lapse train many.lapse -o many.st --task classify --model majority >/dev/null 2>&1
$ lapse predict many.st many.lapse --at 1h..30d/60 --csv -o many_predicted.csv 2>many.txt; \
  awk -v events=$(($(wc -l <many.csv) - 1)) '/predicted/ { gsub(",", ""); s = $7; r = $9; \
    print (r * (s - 0.006) <= events && r * (s + 0.006) >= events ? "agrees" : $0 " for " events) }' many.txt
| agrees
