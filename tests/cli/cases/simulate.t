# The same seed draws the same events; a preset that is none is refused.
$ lapse simulate --preset shop -o shop.csv --sequences 5 --seed 7 --law law.csv | sed -E 's/[0-9,]+ events/N events/'
$ lapse simulate -o - --sequences 5 --seed 7 2>/dev/null | cmp - shop.csv
$ lapse simulate -o again.csv --sequences 5 --seed 8 >/dev/null; cmp -s again.csv shop.csv
$ head -1 shop.csv
$ head -1 law.csv | cut -d, -f1-3
$ lapse simulate --preset zoo -o x.csv
$ mkfifo pipe; lapse simulate -o x.csv --law pipe; test -p pipe && echo "still a pipe"
$ lapse simulate -o no/such/folder/x.csv
$ lapse import shop.csv -o shop.lapse --sequence user --time time --event action,item | grep -c .
