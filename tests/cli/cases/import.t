# What an import tells.
$ lapse import events.csv -o events.lapse
$ lapse import events.csv -o events.lapse --min-count 10 --min-events 7
$ lapse import - -o piped.lapse <events.csv
$ gzip -c events.csv | lapse import - -o zipped.lapse >/dev/null && cmp piped.lapse zipped.lapse
$ sed 's/,/\t/g' events.csv | lapse import - -o tabs.lapse --delimiter tab | tail -3
$ tail -n +2 events.csv | lapse import - -o numbers.lapse --no-header --sequence 1 --time 2 --event 3 | tail -3
$ lapse import events.csv -o events.lapse --json
$ lapse import events.csv -o - 2>report >stream; cat report; cmp stream events.lapse

# Bad rows stop the import, or are skipped aloud. Nothing is written over.
$ cp events.lapse before.lapse; lapse import bad.csv -o events.lapse; echo "exit $?"; cmp before.lapse events.lapse
$ lapse import bad.csv -o bad.lapse --bad-rows skip
$ lapse import bad.csv -o bad.lapse --bad-rows skip --json

# Files that are none.
$ lapse import nothing.csv -o x.lapse
$ lapse import . -o x.lapse
$ : >empty.csv; lapse import empty.csv -o x.lapse
$ head -1 events.csv >header.csv; lapse import header.csv -o x.lapse
$ printf 'user,time,time\na,1,b\n' >twice.csv; lapse import twice.csv -o x.lapse
$ lapse import events.csv -o x.lapse --event item
$ printf 'user,time,event\na,1,\0b\n' >binary.csv; lapse import binary.csv -o x.lapse
$ printf 'user,time,event\na,1,"open\nb,2,c\n' >quote.csv; lapse import quote.csv -o x.lapse
$ printf 'user,time,event\na,1,view,more\n' >fields.csv; lapse import fields.csv -o x.lapse
$ printf 'user,time,event,part\na,1,view,sometimes\n' >part.csv; lapse import part.csv -o x.lapse --split-column part
$ { printf 'user,time,event\na,1,'; head -c 10000000 /dev/zero | tr '\0' x; echo; } >long.csv; \
  lapse import long.csv -o x.lapse
$ gzip -c events.csv | head -c 200 | lapse import - -o x.lapse
$ lapse import events.csv -o no/such/folder/x.lapse
$ ls x.lapse 2>/dev/null

# An output that is no plain file is left as it is. (A pipe stands for the devices here: a test must not endanger those.)
$ mkfifo pipe; lapse import events.csv -o pipe; test -p pipe && echo "still a pipe"
$ mkdir folder; lapse import events.csv -o folder

# A name cannot drive the terminal.
$ printf 'user,time,event\na,\033[31mred,b\n' >escape.csv; lapse import escape.csv -o x.lapse
