# Logs as other programs write them are imported without options; the report says which columns were taken.
$ printf 'order_id,customer_id,order_date,sku,qty,price\n1,ann,2024-03-01,tea,1,3.5\n2,bob,2024-03-01,mug,1,8\n3,ann,2024-03-04,mug,2,8\n' >shop.csv; \
  lapse import shop.csv -o shop.lapse
| read       3 rows, 123 bytes from shop.csv
| sequence   customer_id, found by name; runner-up: order_id
| time       order_date, found by name; ISO 8601
| event      sku, found by name
| zone       3 timestamps without a zone, read as UTC
| ignored    order_id, qty, price
| events     3 events in 2 sequences, 2 event types
| span       2024-03-01T00:00:00Z to 2024-03-04T00:00:00Z, 3 days
| wrote      shop.lapse in N s, N MB/s
$ printf 'patient\tdate\tcode\np1\t2024-01-02\tE11\np2\t2024-01-03\tI10\np1\t2024-02-02\tI10\n' >clinic.tsv; lapse import clinic.tsv -o clinic.lapse
| read       3 rows, 72 bytes from clinic.tsv
| sequence   patient, found by name
| time       date, found by name; ISO 8601
| event      code, found by name
| zone       3 timestamps without a zone, read as UTC
| events     3 events in 2 sequences, 2 event types
| span       2024-01-02T00:00:00Z to 2024-02-02T00:00:00Z, 31 days
| wrote      clinic.lapse in N s, N MB/s

# As pandas writes it: an index without a name, and times without a zone.
$ { echo ',user,time,item'; for i in $(seq 0 9999); do echo "$i,u$((i * 7919 % 997)),2024-03-01 $((i / 1000 + 10)):$((i % 6))0:00,i$((i % 311))"; done; } >pandas.csv; \
  lapse import pandas.csv -o pandas.lapse
| read       10,000 rows, 344 kB from pandas.csv
| sequence   user, found by name
| time       time, found by name; ISO 8601
| event      item, found by name
| zone       10,000 timestamps without a zone, read as UTC
| ignored    (without a name)
| sorted     3 rows out of time order
| events     10,000 events in 997 sequences, 311 event types
| span       2024-03-01T10:00:00Z to 2024-03-01T19:50:00Z, 9.83 hours
| wrote      pandas.lapse in N s, N MB/s
$ lapse import pandas.csv -o berlin.lapse --timezone Europe/Berlin | grep -E 'zone|span'; lapse info berlin.lapse | grep time.zone
| zone       10,000 timestamps without a zone, read as Europe/Berlin
| span       2024-03-01T09:00:00Z to 2024-03-01T18:50:00Z, 9.83 hours
| time.zone        Europe/Berlin

# MovieLens, RecBole, a log of JSON Lines; plain or gzip.
$ printf 'userId,movieId,rating,timestamp\n1,31,2.5,1260759144\n1,1029,3.0,1260759179\n2,31,4.0,835355493\n' | lapse import - -o ratings.lapse
| read       3 rows, 93 bytes from standard input
| sequence   userId, found by name
| time       timestamp, found by name; unix seconds
| event      movieId, found by name
| ignored    rating
| events     3 events in 2 sequences, 2 event types
| span       1996-06-21T11:11:33Z to 2009-12-14T02:52:59Z, 13.5 years
| wrote      ratings.lapse in N s, N MB/s
# Where not every name has a type, names are whole.
$ printf 'user,:token,a:token,time\n1,2,3,5\n1,3,4,6\n' >whole.csv; lapse import whole.csv -o whole.lapse --event a:token --sequence user --time time | head -4
| read       2 rows, 41 bytes from whole.csv
| sequence   user
| time       time; relative numbers
| event      a:token
$ printf 'user_id:token\titem_id:token\ttimestamp:float\n196\t242\t881250949\n186\t302\t891717742\n196\t302\t881250950\n' >ml.inter; lapse import ml.inter -o ml.lapse
| read       3 rows, 98 bytes from ml.inter
| sequence   user_id, found by name
| time       timestamp, found by name; unix seconds
| event      item_id, found by name
| events     3 events in 2 sequences, 2 event types
| span       1997-12-04T15:55:49Z to 1998-04-04T19:22:22Z, 121 days
| wrote      ml.lapse in N s, N MB/s
$ printf '%s\n' '{"ts":1709294400123456,"user":{"id":7,"name":"Ann"},"action":"view","tags":["a"]}' \
  '{"action":"buy","ts":1709294460000000,"user":{"id":7},"price":12.5}' '{"ts":1709298000000000,"user":{"id":8},"action":"caf\u00e9","price":null}' >log.jsonl; \
  lapse import log.jsonl -o log.lapse; lapse info log.lapse | grep -E 'column|format|time.unit'
| read       3 rows, 224 bytes from log.jsonl
| sequence   user.id, found by name; runner-up: user.name
| time       ts, found by name; unix microseconds
| event      action, found by name; runner-up: user.name
| ignored    user.name, tags, price
| events     3 events in 2 sequences, 3 event types
| span       2024-03-01T12:00:00.123Z to 2024-03-01T13:00:00Z, 1 hour
| wrote      log.lapse in N s, N MB/s
| column.sequence  user.id
| column.time      ts
| column.event     action
| time.unit        unix microseconds
| format           JSON Lines
$ gzip -c log.jsonl | lapse import - -o gzip.lapse --number price --json | grep -vE 'rows|sequences|sessions|rounds|seconds|bytes'
| {
|   "input": "-",
|   "output": "gzip.lapse",
|   "format": "JSON Lines",
|   "columns": {
|     "sequence": {
|       "column": "user.id",
|       "given": false,
|       "runner_up": "user.name"
|     },
|     "time": {
|       "column": "ts",
|       "given": false
|     },
|     "event": {
|       "column": "action",
|       "given": false,
|       "runner_up": "user.name"
|     }
|   },
|   "ignored": "user.name, tags",
|   "timezone": "UTC",
|   "encoding": "utf-8",
|   "skipped_lines": 0,
|   "unpopular_event_types": 0,
|   "rare_event_types": 0,
|   "events": 3,
|   "event_types": 3,
|   "fields": [
|     {
|       "name": "price",
|       "type": "number"
|     }
|   ],
|   "first_time": 1709294400.12346,
|   "last_time": 1709298000,
| }

# Two columns that are equally good; --event or --action decides.
$ printf 'timestamp,visitorid,event,itemid\n1433221332117,257597,view,355908\n1433224214164,992329,buy,248676\n' >retail.csv; lapse import retail.csv -o retail.lapse
! lapse: retail.csv:1: the columns are not certain: the event ('event' or 'itemid'); set --sequence visitorid --time timestamp --event event
!
!   role      column     sample         runner-up  why
!   sequence  visitorid  257597                    named like a user; 2 values in 2 rows
!   time      timestamp  1433221332117             named like a time; unix milliseconds, sorted
!   event     event      view           itemid     not certain: named like an event; 2 values in 2 rows
!   others    itemid
!
! If this is right, paste:
!
!   lapse import retail.csv -o retail.lapse --sequence visitorid --time timestamp --event event
!
! Otherwise:
!
!   lapse import retail.csv -o retail.lapse --sequence visitorid --time timestamp --event itemid
= 1
$ lapse import retail.csv -o retail.lapse --event event,itemid | grep event
| event      event,itemid
| events     2 events in 2 sequences, 2 event types
$ lapse import retail.csv -o retail.lapse --action event | grep event
| event      itemid, found by name
| events     2 events in 2 sequences, 2 event types
| fields     event (2 values)

# Clocks that are set back and forward.
$ printf 'user,time,event\na,2024-03-31 02:30,x\na,2024-10-27 02:30,y\n' >clocks.csv; lapse import clocks.csv -o clocks.lapse --timezone Europe/Berlin
| read       2 rows, 58 bytes from clocks.csv
| sequence   user, found by name
| time       time, found by name; ISO 8601
| event      event, found by name
| zone       2 timestamps without a zone, read as Europe/Berlin
| zone       1 timestamp in the hour that occurs twice when clocks are set back, read as the earlier one
| zone       1 timestamp in the hour that is skipped when clocks are set forward, shifted forward
| events     2 events in 1 sequence, 2 event types
| span       2024-03-31T01:30:00Z to 2024-10-27T00:30:00Z, 210 days
| wrote      clocks.lapse in N s, N MB/s

# A row number is not a sequence; where it was taken for one, check warns.
$ { echo id,time,event; for i in $(seq 30); do echo "$i,$i,view"; done; } >rows.csv; lapse import rows.csv -o rows.lapse
! lapse: rows.csv:1: the columns are not certain: the sequence ('id' or 'event'); set --sequence id --time time --event event
!
!   role      column  sample  runner-up  why
!   sequence  id      1       event      not certain: named like a user; 30 values in 30 rows
!   time      time    1                  named like a time; relative numbers, sorted
!   event     event   view               named like an event; 1 value in 30 rows
!
! If this is right, paste:
!
!   lapse import rows.csv -o rows.lapse --sequence id --time time --event event
= 1
$ lapse import rows.csv -o rows.lapse --sequence id >/dev/null; lapse check rows.lapse | grep -A5 single
| warning  single-events         30 of 30 sequences (100.00 %)
|          Sequences of one event, which have no history; the sequence column is
|          'id'.
|          If the sequence column is a row or order number, import with --sequence
|          and the column of the user; --min-events 2 drops such sequences.
| ok       untrained-event-types 0 of 1 event_types

# Missing numbers.
$ printf 'user,time,item,price\na,1,x,NaN\na,2,x,\na,3,x,None\na,4,x,2.5\n' >missing.csv; lapse import missing.csv -o missing.lapse --number price | grep fields; \
  lapse info missing.lapse | grep field.1
| fields     price (number)
| field.1          price (number): mean 2.5, standard deviation 0, 3 missing
