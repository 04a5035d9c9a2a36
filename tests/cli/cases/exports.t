# Files as exports are: what is found, asked and stored. Dates in which day and month cannot be told apart are a question.

$ printf 'Kunde;Bestelldatum;Artikel;Preis\nK1;03.01.2024 08:15;Säge;1,50\nK1;17.01.2024 09:00;Leim;2\nK2;18.01.2024 10:30;Säge;1.234,56\n' | \
  iconv -f utf-8 -t windows-1252 >shop.csv; lapse import shop.csv -o shop.lapse --number Preis --basket | grep -v MB/s; lapse info shop.lapse | grep -E 'encod|order|basket|unit|field'
| read       3 rows, 126 bytes from shop.csv
| sequence   Kunde, found by name
| time       Bestelldatum, found by name; day/month/year
| event      Artikel, found by name
| encoding   latin-1
| zone       3 timestamps without a zone, read as UTC
| events     3 events in 2 sequences, 2 event types
| fields     Preis (number)
| span       2024-01-03T08:15:00Z to 2024-01-18T10:30:00Z, 15.1 days
| field.1          Preis (number): mean 412.687, standard deviation 581.152, 0 missing
| time.unit        day/month/year
| encoding         latin-1
| order            sequence by first appearance, then time; ties are baskets, shuffled
| basket           yes
$ printf '[{"who":{"id":7},"at":"29 Nov 2017 07:14","did":"tea"},\n{"who":{"id":7},"at":"30 Nov 2017 07:14","did":"mug"}]' >a.json; lapse import a.json -o a.lapse --user who.id --item did | grep -v MB/s
| read       2 rows, 108 bytes from a.json
| sequence   who.id
| time       at, found by name; dates in words
| event      did
| zone       2 timestamps without a zone, read as UTC
| events     2 events in 1 sequence, 2 event types
| span       2017-11-29T07:14:00Z to 2017-11-30T07:14:00Z, 1 day
$ { echo 'user,seen,event'; for u in $(seq 20); do for d in 1 2 3 4; do echo "u$u,0$d/05/2024 10:00,e$((d / 3))"; done; done; } >open.csv; lapse import open.csv -o open.lapse
! lapse: open.csv:1: dates may have the day or the month first; not certain: the time ('seen'?); set --sequence user --time seen --event event --time-unit dmy
!
!   role      column  sample            runner-up  why
!   sequence  user    u1                           named like a user; 20 values in 80 rows
!   time      seen    01/05/2024 10:00             not certain: day/month/year or month/day/year
!   event     event   e0                           named like an event; 2 values in 80 rows
!
! If this is right, paste:
!
!   lapse import open.csv -o open.lapse --sequence user --time seen --event event --time-unit dmy
!
! Otherwise:
!
!   lapse import open.csv -o open.lapse --sequence user --time seen --event event --time-unit mdy
= 1
$ lapse import open.csv -o open.lapse --sequence user --time seen --event event --time-unit dmy --tz Europe/Berlin | grep -v MB/s
| read       80 rows, 1.9 kB from open.csv
| sequence   user
| time       seen; day/month/year
| event      event
| zone       80 timestamps without a zone, read as Europe/Berlin
| events     80 events in 20 sequences, 2 event types
| span       2024-05-01T08:00:00Z to 2024-05-04T08:00:00Z, 3 days
$ lapse train open.lapse -o open.st --model majority --no-eval >/dev/null 2>&1; lapse info open.st --all | grep -E 'time.unit|time.zone'; lapse predict open.st open.csv --at +1h --top 1 --csv 2>&1 | head -4
| time.unit             day/month/year
| time.zone             Europe/Berlin
| lapse: 80 timestamps without a zone, read as Europe/Berlin; --timezone sets another
| sequence,at,time,timestamp,rank,event,probability
| u1,+1h,1714813200,2024-05-04T09:00:00Z,1,e1,0.66
| u2,+1h,1714813200,2024-05-04T09:00:00Z,1,e1,0.66
$ { echo 'run,elapsed,step'; for i in 1 2 3 4 5 6 7 8; do echo "run$((i % 2)),0.$i,s$((i % 3))"; done; } >steps.csv; lapse import steps.csv -o steps.lapse --sequence run | grep -v MB/s
| read       8 rows, 113 bytes from steps.csv
| sequence   run
| time       elapsed, found by name; relative numbers
| event      step, found by name
| events     8 events in 2 sequences, 3 event types
| span       0.1 to 0.8, since a start of their own; --time-unit s if they are unix times
# Such times have no hour of the week.
$ { echo 'run,elapsed,step'; for i in $(seq 10 99); do echo "run$((i % 9)),0.$i,s$((i % 3))"; done; } >steps.csv; lapse train steps.csv -o steps.st --when --epochs 1 --dims 4 --no-eval 2>/dev/null >/dev/null; lapse info steps.st --all | grep when_background
| when_background       constant
# They are printed as they are, in any unit: gaps of 1e-14, and times behind the year 9999.
$ lapse predict steps.st steps.csv --when --now last --csv 2>/dev/null | cut -d, -f1,2 | sed -n 1,3p
| sequence,from
| run1,0.91
| run2,0.92
$ for unit in 1e-12 1e14; do awk -F, -v OFS=, -v unit=$unit 'NR > 1 { $2 = sprintf("%.6g", $2 * unit) } 1' steps.csv >other.csv; \
  lapse import other.csv -o other.lapse --time-unit relative --sequence run >/dev/null; lapse train other.lapse -o other.st --when --epochs 1 --dims 4 --no-eval >/dev/null 2>&1; \
  lapse predict other.st other.csv --time-unit relative --when --now last --csv 2>/dev/null | cut -d, -f1,2 | sed -n 2p; done
| run1,9.1e-13
| run1,9.1e+13
$ { echo 'id,user,at,event'; for i in $(seq 10 28); do echo "$i,1785$((i % 3)).0,2024-01-$i,e$((i % 4))"; done; echo '99,17851,2024-01-29,e1'; } >p.csv; lapse import p.csv -o p.lapse | grep events
| events     20 events in 3 sequences, 4 event types
$ lapse predict open.st open.csv --quiet
! lapse: predict has no option --quiet; progress and notes go to standard error: add 2>/dev/null
! lapse: see `lapse predict --help`
= 2
# The encoding of the text is stored beside the encoding of time, and used where the text does not tell.
$ { echo 'user,time,event'; for u in $(seq 9); do for d in 1 2 3 4; do printf 'u%d,%d,\xf8l%d\n' $u $((1700000000 + d * 86400)) $((d % 3)); done; done; } >central.csv; lapse train central.csv -o c.st --text-encoding windows-1250 --epochs 1 --dims 4 --no-eval >/dev/null 2>&1; lapse info c.st --all | grep -i encoding
| encoding              mercer
| text.encoding         windows-1250
$ lapse predict c.st central.csv --at +1h --top 1 --csv 2>/dev/null | head -2 | cut -d, -f6
| event
| řl0
