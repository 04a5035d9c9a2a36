# Inputs that cannot be imported: what is wrong, where, and what to do instead.
$ try() { lapse import "$@" -o x.lapse; }; declare -f try >try.sh

# Columns.
$ . ./try.sh; printf 'who,when exactly,what\na,1,x\n' >a.csv; try a.csv
! lapse: a.csv:1: no column was recognized as the sequence: select it with --sequence; the columns are: who, when exactly, what
!
!   role      column        sample  runner-up  why
!   sequence                                   no column looks like it
!   time      when exactly  1                  named like a time; relative numbers
!   event     what          x                  named like an event; 1 value in 1 row
!   others    who
= 1
$ . ./try.sh; printf '196,242,3,881250949\n186,302,3,891717742\n' >a.csv; try a.csv
! lapse: a.csv:1: the first line is data, not a header; not certain: the time ('4' or '2'), the event ('3' or '2'); set --sequence 1 --time 4 --event 3 --no-header
!
!   role      column  sample     runner-up  why
!   sequence  1       186        2          1 value in 1 row
!   time      4       891717742  2          not certain: unix seconds
!   event     3       3          2          not certain: 1 value in 1 row
!   others    2
!
! If this is right, paste:
!
!   lapse import a.csv -o x.lapse --sequence 1 --time 4 --event 3 --no-header
= 1
$ . ./try.sh; printf 'user,time,action,item\na,1,view,tea\n' >a.csv; try a.csv
! lapse: a.csv:1: the columns are not certain: the event ('action' or 'item'); set --sequence user --time time --event action
!
!   role      column  sample  runner-up  why
!   sequence  user    a                  named like a user; 1 value in 1 row
!   time      time    1                  named like a time; relative numbers
!   event     action  view    item       not certain: named like an event; 1 value in 1 row
!   others    item
!
! If this is right, paste:
!
!   lapse import a.csv -o x.lapse --sequence user --time time --event action
!
! Otherwise:
!
!   lapse import a.csv -o x.lapse --sequence user --time time --event item
= 1
$ . ./try.sh; printf 'user,ship_date,return_date,item\na,2024-01-01,2024-01-02,x\n' >a.csv; try a.csv
! lapse: a.csv:1: the columns are not certain: the time ('ship_date' or 'return_date'); set --sequence user --time ship_date --event item
!
!   role      column     sample      runner-up    why
!   sequence  user       a                        named like a user; 1 value in 1 row
!   time      ship_date  2024-01-01  return_date  not certain: named like a time; ISO 8601
!   event     item       x                        named like an event; 1 value in 1 row
!   others    return_date
!
! If this is right, paste:
!
!   lapse import a.csv -o x.lapse --sequence user --time ship_date --event item
!
! Otherwise:
!
!   lapse import a.csv -o x.lapse --sequence user --time return_date --event item
= 1
$ . ./try.sh; { echo id,time,event; for i in $(seq 30); do echo "$i,$i,view"; done; } >a.csv; try a.csv
! lapse: a.csv:1: the columns are not certain: the sequence ('id' or 'event'); set --sequence id --time time --event event
!
!   role      column  sample  runner-up  why
!   sequence  id      1       event      not certain: named like a user; 30 values in 30 rows
!   time      time    1                  named like a time; relative numbers, sorted
!   event     event   view               named like an event; 1 value in 30 rows
!
! If this is right, paste:
!
!   lapse import a.csv -o x.lapse --sequence id --time time --event event
= 1
$ . ./try.sh; printf 'user,date,event\na,noon,view\n' >a.csv; try a.csv
! lapse: a.csv:2:2: 'noon' is not a time: expected unix seconds, milliseconds, microseconds or nanoseconds, or a date such as 2026-11-15T12:00:00Z
= 1

# Times.
$ . ./try.sh; printf 'user,time,event\na,03/01/2024,x\na,04/01/2024,y\n' >a.csv; try a.csv
! lapse: a.csv:1: dates may have the day or the month first; set --sequence user --time time --event event --time-unit dmy
!
!   role      column  sample      runner-up  why
!   sequence  user    a                      named like a user; 1 value in 2 rows
!   time      time    03/01/2024             named like a time; day/month/year or month/day/year, sorted
!   event     event   x                      named like an event; 2 values in 2 rows
!
! If this is right, paste:
!
!   lapse import a.csv -o x.lapse --sequence user --time time --event event --time-unit dmy
!
! Otherwise:
!
!   lapse import a.csv -o x.lapse --sequence user --time time --event event --time-unit mdy
= 1
$ . ./try.sh; printf 'user,time,event\na,1709294400,x\na,1709294400000,y\n' >a.csv; try a.csv
! lapse: a.csv:3:2: '1709294400000' has another magnitude than the other rows, which have seconds: set --time-unit
= 1
$ . ./try.sh; printf 'user,time,event\na,2024-02-30 12:00,x\n' >a.csv; try a.csv
! lapse: a.csv:2:2: '2024-02-30 12:00' has a date that does not exist
= 1
$ . ./try.sh; try events.csv --timezone Europe/Berln
! lapse: there is no time zone 'Europe/Berln' in /usr/share/zoneinfo; give a name such as Europe/Berlin, UTC, or an offset such as +02:00
= 2
$ . ./try.sh; try events.csv --timezone ../../etc/passwd
! lapse: '../../etc/passwd' is not the name of a time zone; give a name such as Europe/Berlin, UTC, or an offset such as +02:00
= 2
$ . ./try.sh; TZDIR=/nonexistent try events.csv --timezone Europe/Berlin
! lapse: the time zone database is missing: there is no folder /nonexistent; install the package tzdata, or set TZDIR to the folder of the database
= 1
$ . ./try.sh; try events.csv --time-unit days
! lapse: --time-unit takes one of auto, s, ms, us, ns, iso, mdy, dmy, text, compact, excel, relative, not 'days'
! lapse: see `lapse import --help`
= 2

# Numbers.
$ . ./try.sh; printf 'user,time,item,price\na,1,x,inf\n' >a.csv; try a.csv --number price
! lapse: a.csv:2:4: 'inf' is not a number: expected a decimal such as 12.5; if it is missing, an empty field, NaN, NA or null
= 1
$ . ./try.sh; printf 'user,time,item,price\na,1,x,"1,5"\n' >a.csv; try a.csv --number price
| read       1 row, 33 bytes from a.csv
| sequence   user, found by name
| time       time, found by name; relative numbers
| event      item, found by name
| events     1 event in 1 sequence, 1 event type
| fields     price (number)
| span       1 to 1, since a start of their own; --time-unit s if they are unix times
| wrote      x.lapse in N s, N MB/s

# JSON Lines.
$ . ./try.sh; printf '{"user":1,"time":1,"event":"x"}\n{"user":1,"time":2,"event":"y"\n' >a.jsonl; try a.jsonl
! lapse: a.jsonl:2:31: the object does not end in its line: JSON Lines has one object per line (jq -c . FILE writes it so)
= 1
$ . ./try.sh; printf '{\n  "user": 1\n}\n' >a.jsonl; try a.jsonl
! lapse: a.jsonl:1: no column was recognized as the time: select it with --time; the columns are: user
!
!   role      column  sample  runner-up  why
!   sequence  user    1                  named like a user; 1 value in 1 row
!   time                                 no column looks like it
!   event                                no column looks like it
= 1
$ . ./try.sh; printf '{"user":1,"time":1,"event":"x","user":2}\n' >a.jsonl; try a.jsonl
! lapse: a.jsonl:1:32: the key 'user' occurs twice in this object
= 1
$ . ./try.sh; printf '{"user":1,"time":1,"event":["x"]}\n' >a.jsonl; try a.jsonl
! lapse: a.jsonl:1:28: the key 'event' is an array: a column must have strings, numbers, booleans or null
= 1
$ . ./try.sh; printf '{"user":1,"time":1,"event":"x"}\n{"time":2,"event":"y"}\n' >a.jsonl; try a.jsonl
! lapse: a.jsonl:2: the sequence is missing: the object has no value for the key 'user'
= 1
$ . ./try.sh; printf '{"user":1,"time":1,"event":"\\ud83d"}\n' >a.jsonl; try a.jsonl --sequence user --time time --event event
! lapse: a.jsonl:1:29: this escape is half of a surrogate pair: the other half is missing
= 1
$ . ./try.sh; printf '{"user":1,"time":1,"event":"x"}\n' >a.jsonl; try a.jsonl --number cost
! lapse: a.jsonl: no object has a value for the key 'cost'
= 1
$ . ./try.sh; printf '[{"user":1,"time":1,"event":"x"}]\n' >a.json; try a.json
| read       1 row, 32 bytes from a.json
| sequence   user, found by name
| time       time, found by name; relative numbers
| event      event, found by name
| events     1 event in 1 sequence, 1 event type
| span       1 to 1, since a start of their own; --time-unit s if they are unix times
| wrote      x.lapse in N s, N MB/s

# Other kinds of files.
$ . ./try.sh; printf 'PAR1\025\0\025' >a.parquet; try a.parquet
! lapse: a.parquet: this is a Parquet file, not CSV or JSON Lines: pipe it through DuckDB: duckdb -csv -c "FROM 'FILE'" | lapse import - -o DATASET; or in Python: lapse.Dataset.from_arrow(pyarrow.parquet.read_table('FILE'), sequence=..., time=..., event=...).save(DATASET)
= 1
$ . ./try.sh; printf 'ARROW1\0\0' >a.feather; try a.feather
! lapse: a.feather: this is an Arrow (Feather) file, not CSV or JSON Lines: read it in Python (pandas or pyarrow) and import it with lapse.Dataset.from_arrow, or save it as CSV
= 1
$ . ./try.sh; printf 'PK\003\004\024\0\006\0\010\0\0\0!\0\0\0\0\0\0\0\0\0\0\0\0\0\023\0\0\0[Content_Types].xml' >a.xlsx; try a.xlsx
! lapse: a.xlsx: this is an Excel workbook (xlsx), not CSV or JSON Lines: read it in Python (pandas or pyarrow) and import it with lapse.Dataset.from_arrow, or save it as CSV
= 1
$ . ./try.sh; printf 'SQLite format 3\0\020\0' >a.db; try a.db
! lapse: a.db: this is an SQLite database, not CSV or JSON Lines: export a query into a pipe: sqlite3 -header -csv FILE 'SELECT ...' | lapse import - -o DATASET
= 1
$ . ./try.sh; printf '\050\265\057\375\004' >a.csv.zst; try a.csv.zst
! lapse: a.csv.zst: this is a file compressed with zstd, not CSV or JSON Lines: decompress it into a pipe: zstd -dc FILE | lapse import - -o DATASET
= 1
$ . ./try.sh; printf 'BZh91AY&SY' >a.csv.bz2; try a.csv.bz2
! lapse: a.csv.bz2: this is a file compressed with bzip2, not CSV or JSON Lines: decompress it into a pipe: bzip2 -dc FILE | lapse import - -o DATASET
= 1
$ . ./try.sh; printf 'PK\003\004\024\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\006\0\0\0a.csv\n' >a.zip; try a.zip
! lapse: a.zip: this is a zip file, not CSV or JSON Lines: decompress it into a pipe: unzip -p FILE | lapse import - -o DATASET
= 1
$ . ./try.sh; printf '\200\004\225\020\0\0' >a.pkl; try a.pkl
! lapse: a.pkl: this is a Python pickle, not CSV or JSON Lines: read it in Python (pandas or pyarrow) and import it with lapse.Dataset.from_arrow, or save it as CSV
= 1
$ . ./try.sh; lapse import events.csv -o d.lapse >/dev/null; try d.lapse
! lapse: d.lapse: this is a dataset of Lapse, not CSV or JSON Lines: use it as it is: it needs no import
= 1
$ ls x.lapse
| x.lapse
