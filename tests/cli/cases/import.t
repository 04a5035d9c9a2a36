# The report of an import.
$ lapse import events.csv -o events.lapse
| read       96 rows, 1.9 kB from events.csv
| sequence   user, found by name
| time       time, found by name; unix seconds
| event      event, found by name
| events     96 events in 12 sequences, 4 event types
| span       2026-01-01T00:00:00Z to 2026-01-05T13:18:00Z, 4.55 days
| wrote      events.lapse in N s, N MB/s
$ lapse import events.csv -o events.lapse --min-count 10 --min-events 7
| read       96 rows, 1.9 kB from events.csv
| sequence   user, found by name
| time       time, found by name; unix seconds
| event      event, found by name
| dropped    6 rows of 1 event type with fewer than 10 occurrences
| dropped    6 rows of 1 sequence with fewer than 7 events
| events     84 events in 11 sequences, 3 event types
| span       2026-01-01T01:00:00Z to 2026-01-05T07:34:00Z, 4.27 days
| wrote      events.lapse in N s, N MB/s
$ lapse import - -o piped.lapse <events.csv
| read       96 rows, 1.9 kB from standard input
| sequence   user, found by name
| time       time, found by name; unix seconds
| event      event, found by name
| events     96 events in 12 sequences, 4 event types
| span       2026-01-01T00:00:00Z to 2026-01-05T13:18:00Z, 4.55 days
| wrote      piped.lapse in N s, N MB/s
$ gzip -c events.csv | lapse import - -o zipped.lapse >/dev/null && cmp piped.lapse zipped.lapse
$ sed 's/,/\t/g' events.csv | lapse import - -o tabs.lapse --delimiter tab | tail -3
| events     96 events in 12 sequences, 4 event types
| span       2026-01-01T00:00:00Z to 2026-01-05T13:18:00Z, 4.55 days
| wrote      tabs.lapse in N s, N MB/s
$ tail -n +2 events.csv | lapse import - -o numbers.lapse --no-header --sequence 1 --time 2 --event 3 | tail -3
| events     96 events in 12 sequences, 4 event types
| span       2026-01-01T00:00:00Z to 2026-01-05T13:18:00Z, 4.55 days
| wrote      numbers.lapse in N s, N MB/s
$ printf '1,2,3,4,5,6,7,8,9,b\n1,2,3,4,5,6,7,8,9,a\n' | lapse import - -o ten.lapse --no-header --sequence 1 --time 2 --event 10 | grep event
| event      10
| events     2 events in 1 sequence, 2 event types
$ printf '1,2,3,4,5,6,7,8,9,b\n' | lapse import - -o ten.lapse --no-header --sequence 1 --time 2 --event 11
! lapse: standard input:1: there is no column '11' for the event: without a header, columns are numbers from 1 to 10
= 1
$ lapse import events.csv -o events.lapse --json
| {
|   "input": "events.csv",
|   "output": "events.lapse",
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
|       "column": "event",
|       "given": false
|     }
|   },
|   "ignored": "",
|   "time_unit": "unix seconds",
|   "timezone": "UTC",
|   "encoding": "utf-8",
|   "skipped_lines": 0,
|   "summary_rows": 0,
|   "local_rows": 0,
|   "ambiguous_rows": 0,
|   "missing_rows": 0,
|   "bytes": 1923,
|   "rows": 96,
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
|   "events": 96,
|   "sequences": 12,
|   "event_types": 4,
|   "fields": [],
|   "first_time": 1767225600,
|   "last_time": 1767619080,
|   "seconds": N
| }
$ lapse import events.csv -o - 2>report >stream; cat report; cmp stream events.lapse
| read       96 rows, 1.9 kB from events.csv
| sequence   user, found by name
| time       time, found by name; unix seconds
| event      event, found by name
| events     96 events in 12 sequences, 4 event types
| span       2026-01-01T00:00:00Z to 2026-01-05T13:18:00Z, 4.55 days
| wrote      - in N s, N MB/s

# Malformed rows stop the import, or are skipped with a note. A failed import does not change the output file.
$ cp events.lapse before.lapse; lapse import bad.csv -o events.lapse; echo "exit $?"; cmp before.lapse events.lapse
| exit 1
! lapse: bad.csv:3:2: 'yesterday' is not a time in unix seconds
$ lapse import bad.csv -o bad.lapse --bad-rows skip
| read       5 rows, 107 bytes from bad.csv
| sequence   user, found by name
| time       time, found by name; unix seconds
| event      event, found by name
| skipped    2 malformed rows; first at bad.csv:3:2: 'yesterday' is not a time in unix seconds
| events     3 events in 2 sequences, 3 event types
| span       2026-01-01T00:00:00Z to 2026-01-01T01:01:40Z, 1.03 hours
| wrote      bad.lapse in N s, N MB/s
$ lapse import bad.csv -o bad.lapse --bad-rows skip --json
| {
|   "input": "bad.csv",
|   "output": "bad.lapse",
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
|       "column": "event",
|       "given": false
|     }
|   },
|   "ignored": "",
|   "time_unit": "unix seconds",
|   "timezone": "UTC",
|   "encoding": "utf-8",
|   "skipped_lines": 0,
|   "summary_rows": 0,
|   "local_rows": 0,
|   "ambiguous_rows": 0,
|   "missing_rows": 0,
|   "bytes": 107,
|   "rows": 5,
|   "bad_rows": 2,
|   "first_bad_row": {
|     "file": "bad.csv",
|     "line": 3,
|     "column": 2,
|     "message": "'yesterday' is not a time in unix seconds"
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
|   "events": 3,
|   "sequences": 2,
|   "event_types": 3,
|   "fields": [],
|   "first_time": 1767225600,
|   "last_time": 1767229300,
|   "seconds": N
| }

# Files that cannot be imported.
$ lapse import nothing.csv -o x.lapse
! lapse: nothing.csv: cannot open: No such file or directory
= 1
$ lapse import . -o x.lapse
! lapse: .: cannot read: Is a directory
= 1
$ : >empty.csv; lapse import empty.csv -o x.lapse
! lapse: empty.csv: the file is empty: it must have a header and rows
= 1
$ head -1 events.csv >header.csv; lapse import header.csv -o x.lapse
! lapse: header.csv: the file has a header but no rows
= 1
$ printf 'user,time,time\na,1,b\n' >twice.csv; lapse import twice.csv -o x.lapse
! lapse: twice.csv:1:3: the header names two columns 'time': columns 2 and 3
= 1
$ lapse import events.csv -o x.lapse --event item
! lapse: events.csv:1: there is no column 'item' for the event; the columns are: user, time, event
= 1
$ printf 'user,time,event\na,1,\0b\n' >binary.csv; lapse import binary.csv -o x.lapse
! lapse: binary.csv:2: this is a binary file, not text: it has a NUL byte
= 1
$ printf 'user,time,event\na,1,"open\nb,2,c\n' >quote.csv; lapse import quote.csv -o x.lapse
! lapse: quote.csv:2: a quoted field that begins in this line has no closing quote
= 1
$ printf 'user,time,event\na,1,view,more\n' >fields.csv; lapse import fields.csv -o x.lapse
! lapse: fields.csv:2: this row has 4 fields, but the header has 3
= 1
$ printf 'user,time,event,part\na,1,view,sometimes\n' >part.csv; lapse import part.csv -o x.lapse --split-column part
! lapse: part.csv:2:4: 'sometimes' is not a split: expected train, valid or test
= 1
$ { printf 'user,time,event\na,1,'; head -c 10000000 /dev/zero | tr '\0' x; echo; } >long.csv; \
  lapse import long.csv -o x.lapse
! lapse: long.csv:2: this line is longer than the limit of 1 MiB
= 1
$ gzip -c events.csv | head -c 200 | lapse import - -o x.lapse
! lapse: standard input: the gzip data is truncated
= 1
$ lapse import events.csv -o no/such/folder/x.lapse
! lapse: no/such/folder/x.lapse: cannot write: No such file or directory
= 1
$ ls x.lapse 2>/dev/null
= 2

# Output to a pipe; output to a folder is an error. (Never use -o /dev/anything here: a failing test could replace a device.)
$ mkfifo pipe; cat pipe >stream & lapse import events.csv -o pipe >/dev/null; wait; test -p pipe && cmp stream events.lapse
$ mkdir folder; lapse import events.csv -o folder
! lapse: folder: cannot write: Is a directory
= 1

# Control characters in names do not reach the terminal.
$ printf 'user,time,event\na,\033[31mred,b\n' >escape.csv; lapse import escape.csv -o x.lapse
! lapse: escape.csv:2:2: '?[31mred' is not a time: expected unix seconds, milliseconds, microseconds or nanoseconds, or a date such as 2026-11-15T12:00:00Z
= 1

# Preparation: sessions, duplicates, iterated minimums. The report and the dataset have all of it.
$ lapse import repeats.csv -o r.lapse --session-gap 30m --deduplicate exact --min-count 2 --min-events 2 --min-rounds iterated
| read       11 rows, 224 bytes from repeats.csv
| sequence   user, found by name
| time       time, found by name; unix seconds
| event      item, found by name
| sessions   1 sequence split at gaps longer than 30 minutes, 4 sessions in total
| dropped    1 row with the same sequence, time and event as another
| dropped    4 rows of 4 event types with fewer than 2 occurrences
| dropped    2 rows of 2 sequences with fewer than 2 events
| filtered   by both minimums in 3 rounds, until no row was dropped
| events     4 events in 2 sequences, 1 event type
| span       2026-01-01T00:00:00Z to 2026-01-01T03:01:00Z, 3.02 hours
| wrote      r.lapse in N s, N MB/s
$ lapse info r.lapse | grep -E '^(sequences|events|session_gap|deduplicate|min_|rows|rounds)'
| sequences        2
| events           4
| session_gap      30 minutes
| deduplicate      exact
| min_events       2
| min_count        2
| min_rounds       iterated
| rows.read        11
| rows.duplicate   1 duplicates, dropped
| rows.rare        4 dropped with 4 rare event types
| rows.short       2 dropped with 2 short sequences
| rounds           3 iterations until both minimums hold
$ lapse import repeats.csv -o r.lapse --deduplicate consecutive
| read       11 rows, 224 bytes from repeats.csv
| sequence   user, found by name
| time       time, found by name; unix seconds
| event      item, found by name
| dropped    1 row with the same event as the previous row
| events     10 events in 3 sequences, 5 event types
| span       2026-01-01T00:00:00Z to 2026-01-01T03:02:00Z, 3.03 hours
| wrote      r.lapse in N s, N MB/s
$ lapse import repeats.csv -o r.lapse --session-gap 30m --json | grep -E 'cut|sessions|duplicate|rounds|"sequences'
|   "cut_sequences": 1,
|   "sessions": 4,
|   "duplicate_rows": 0,
|   "rounds": 0,
|   "sequences": 4,
$ lapse import repeats.csv -o r.lapse --session-gap 30
! lapse: --session-gap takes a duration with its unit, such as 90s, 15m, 3h, 2d, 1w or 2y, not '30'
! lapse: see `lapse import --help`
= 2
$ lapse import repeats.csv -o r.lapse --session-gap -5m
! lapse: --session-gap takes a duration with its unit, such as 90s, 15m, 3h, 2d, 1w or 2y, not '-5m'
! lapse: see `lapse import --help`
= 2
$ lapse import repeats.csv -o r.lapse --deduplicate all
! lapse: --deduplicate takes one of none, exact, consecutive, not 'all'
! lapse: see `lapse import --help`
= 2
$ lapse import repeats.csv -o r.lapse --min-rounds 3
! lapse: --min-rounds takes one of once, iterated, not '3'
! lapse: see `lapse import --help`
= 2

# A bound on the memory changes no byte.
$ lapse simulate --preset shop --sequences 2000 --seed 5 -o many.csv 2>/dev/null >/dev/null
$ lapse import many.csv -o free.lapse --event item --action action >/dev/null
$ lapse import many.csv -o bound.lapse --event item --action action --memory 64M >/dev/null && cmp free.lapse bound.lapse
$ ls -A | grep -c lapse-
| 0
= 1
$ lapse import many.csv -o bound.lapse --event item --memory 2X
! lapse: --memory is '2X'; it must be a number of bytes such as 500M or 2G
! lapse: see `lapse import --help`
= 2
$ lapse import many.csv -o bound.lapse --event item --memory 1M
! lapse: the memory is 1 MB; it must be at least 64 MB
= 2
