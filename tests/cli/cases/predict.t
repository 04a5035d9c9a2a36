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
| sequence,at,time,rank,event,probability
| max,+1h,1769945400,1,buy,0.531746032
| nora,+1h,1770027300,1,view,0.492283951
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
|   ]
| }
$ lapse predict m.safetensors history.csv --at +0s --top 99 | wc -l
| 9

# A query time before the last event of a sequence is an error, without partial output.
$ lapse predict m.safetensors history.csv --at 2026-02-02T00:00:00Z
! lapse: --at 2026-02-02T00:00:00Z is before the last event of sequence 'nora', 2026-02-02T09:15:00Z; use that time or later
= 1

# Events that the model does not know.
$ lapse predict m.safetensors strange.csv --at +1h
! lapse: strange.csv: 3 events are of 2 event types that the model does not know: 'wave' (2), 'nod' (1); --unknown skip skips them
= 1
$ lapse predict m.safetensors strange.csv --at +1h --unknown skip --top 1
| sequence  rank  at +1h
| max          1  buy     53.2 %
! lapse: strange.csv: 3 events are of 2 event types that the model does not know: 'wave' (2), 'nod' (1); skipped
! lapse: sequence 'olaf' has no event that the model knows: no prediction
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
|   ]
| }
! lapse: strange.csv: 3 events are of 2 event types that the model does not know: 'wave' (2), 'nod' (1); skipped
! lapse: sequence 'olaf' has no event that the model knows: no prediction

# Columns: as given, else those of the training data if the file has them, else detected by name.
$ sed '1s/user/customer/; 1s/event/item/' history.csv >other.csv; lapse predict m.safetensors other.csv --at +1h --top 1
| sequence  rank  at +1h
| max          1  buy     53.2 %
| nora         1  view    49.2 %
$ sed '1s/user/customer/; s/$/,x/' history.csv | sed '1s/x$/item/' >more.csv; lapse predict m.safetensors more.csv --at +1h --top 1
| sequence  rank  at +1h
| max          1  buy     53.2 %
| nora         1  view    49.2 %
$ lapse predict m.safetensors renamed.csv --at +1h --top 1
! lapse: renamed.csv:1: there is no column 'user' for the sequence; the columns are: customer, when, what
= 1
$ lapse predict m.safetensors renamed.csv --at +1h --top 1 --sequence customer --time when --event what
| sequence  rank  at +1h
| max          1  buy     53.2 %
$ tail -n +2 history.csv | lapse predict m.safetensors - --at +1h --top 1 --no-header --sequence 1 --time 2 --event 3
| sequence  rank  at +1h
| max          1  buy     53.2 %
| nora         1  view    49.2 %

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
$ lapse predict m.safetensors events.lapse --at +1h
! lapse: events.lapse: this is a dataset of Lapse, not CSV or JSON Lines: use it as it is: it needs no import
= 1

# Names with special characters are escaped for the output format.
$ printf 'user,time,event\n"a ""b"", c",1,view\n"x\x01y",1,view\n"Zo\xc3\xab",1,view\n' >names.csv
$ lapse predict m.safetensors names.csv --at +1h --top 1 --csv | LC_ALL=C cat -v
| sequence,at,time,rank,event,probability
| "a ""b"", c",+1h,3601,1,cart,0.614035088
| x^Ay,+1h,3601,1,cart,0.614035088
| ZoM-CM-+,+1h,3601,1,cart,0.614035088
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
| sequence,at,time,rank,item,score,probability
| max,+1d,1770028200,1,buy,-1.93283808,0.144736842
| max,+1d,1770028200,2,rate,-2.72129536,0.0657894737
| nora,+1d,1770110100,1,rate,-2.72129536,0.0657894737
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
|   ]
| }
