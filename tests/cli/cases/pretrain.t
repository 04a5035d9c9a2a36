# Item vectors: from events, and from what a catalogue says of items.
$ lapse simulate --preset catalogue --items 300 --sequences 60 --seed 2 -o c.csv --catalogue items.csv >/dev/null
$ lapse import c.csv -o c.lapse --sequence user --time time --event item >/dev/null
$ lapse pretrain c.lapse -o v.safetensors --catalogue items.csv --dims 8 --epochs 2 | sed -E 's/[0-9]+ (learned|known)/N \1/g'
$ lapse pretrain c.lapse -o w.safetensors --catalogue items.csv --dims 8 --epochs 2 2>/dev/null >/dev/null; cmp v.safetensors w.safetensors
$ lapse pretrain c.lapse -o w.safetensors --dims 8 --epochs 1 --json 2>/dev/null | sed -E 's/: [0-9]+/: N/'
$ gzip -k items.csv; lapse pretrain c.lapse -o w.safetensors --catalogue items.csv.gz --dims 8 --epochs 1 2>/dev/null | head -1
$ lapse pretrain c.lapse -o w.safetensors --catalogue items.csv --words name,colour
$ lapse pretrain c.lapse -o w.safetensors --catalogue none.csv
$ (cat items.csv; echo i7,again,X,y) | lapse pretrain c.lapse -o w.safetensors --catalogue -
$ lapse pretrain c.lapse -o c.lapse
$ lapse pretrain c.lapse -o - 
$ lapse pretrain c.lapse -o w.safetensors --dims 0
$ lapse pretrain c.lapse -o w.safetensors --split-by moon
$ lapse info v.safetensors
