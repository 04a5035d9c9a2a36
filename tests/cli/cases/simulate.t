# The same seed draws the same events; a preset that is none is refused.
$ lapse simulate --preset shop -o shop.csv --sequences 5 --seed 7 --law law.csv | sed -E 's/[0-9,]+ events/N events/'
| wrote      N events to shop.csv, their law to law.csv in N s
$ lapse simulate -o - --sequences 5 --seed 7 2>/dev/null | cmp - shop.csv
$ lapse simulate -o again.csv --sequences 5 --seed 8 >/dev/null; cmp -s again.csv shop.csv
= 1
$ head -1 shop.csv
| user,time,item,action,category
$ head -1 law.csv | cut -d, -f1-3
| user,time,event
$ lapse simulate --preset zoo -o x.csv
! lapse: there is no preset 'zoo' to simulate; the presets are: shop
= 2
$ lapse simulate -o no/such/folder/x.csv
! lapse: no/such/folder/x.csv: cannot write: No such file or directory
= 1
$ lapse import shop.csv -o shop.lapse --sequence user --time time --event action,item | grep -c .
| 4
