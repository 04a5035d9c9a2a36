# The same seed simulates the same events; an unknown preset is an error.
$ lapse simulate --preset shop -o shop.csv --sequences 5 --seed 7 --law law.csv | sed -E 's/[0-9,]+ events/N events/'
| wrote      N events to shop.csv, their true probabilities to law.csv in N s
$ lapse simulate -o - --sequences 5 --seed 7 2>/dev/null | cmp - shop.csv
$ lapse simulate -o again.csv --sequences 5 --seed 8 >/dev/null; cmp -s again.csv shop.csv
= 1
$ head -1 shop.csv
| user,time,item,action,category
$ head -1 law.csv | cut -d, -f1-3
| user,time,event
$ lapse simulate --preset zoo -o x.csv
! lapse: there is no preset 'zoo' to simulate; the presets are: shop, cycle, catalogue
= 2
$ lapse simulate -o no/such/folder/x.csv
! lapse: no/such/folder/x.csv: cannot write: No such file or directory
= 1
$ lapse import shop.csv -o shop.lapse --sequence user --time time --event action,item | grep -c .
| 8

# The preset catalogue: any number of items, consistent events and metadata, no --law.
$ lapse simulate --preset catalogue --items 500 --sequences 40 --seed 3 -o c.csv --catalogue items.csv
| wrote      567 events to c.csv, the catalogue to items.csv in N s
$ head -2 items.csv
| item,name,brand,category
| i1,dark netinu copper kettle,Pizoka,copper kettle
$ wc -l < items.csv
| 501
$ head -2 c.csv
| user,time,item,category
| u1,1767747311.904,i172,folding drill
$ lapse simulate --preset catalogue --items 500 --sequences 40 --seed 3 -o - --catalogue again.csv 2>/dev/null | cmp - c.csv
$ cmp items.csv again.csv
$ lapse simulate --preset catalogue --items 500 --sequences 40 -o x.csv --law none.csv
! lapse: the preset 'catalogue' has no table of probabilities, because its law has no closed form; use another preset
= 2
$ ls none.csv 2>/dev/null
= 2
$ lapse simulate --preset catalogue --items 99 -o x.csv
! lapse: items is 99; it must be 100 to 20000000, or 0 for 20000
= 2
$ lapse simulate --items 500 -o x.csv
! lapse: the preset 'shop' has a fixed set of items; only 'catalogue' accepts a number of items
= 2
$ lapse simulate -o x.csv --catalogue items.csv
! lapse: only the preset 'catalogue' has an item catalogue
= 2
$ lapse simulate --preset catalogue -o x.csv --catalogue x.csv
! lapse: --output x.csv and --catalogue x.csv are the same file
! lapse: see `lapse simulate --help`
= 2
$ lapse import c.csv -o c.lapse --sequence user --time time --event item --field category | grep -c .
| 8
