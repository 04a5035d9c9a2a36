# Item vectors from events and from catalogue features.
$ lapse simulate --preset catalogue --items 300 --sequences 60 --seed 2 -o c.csv --catalogue items.csv >/dev/null
$ lapse import c.csv -o c.lapse --sequence user --time time --event item >/dev/null
$ lapse pretrain c.lapse -o v.safetensors --catalogue items.csv --dims 8 --epochs 2 | sed -E 's/[0-9]+ (trained|initialized)/N \1/g'
| wrote      300 item vectors of 8 dimensions to v.safetensors in N s
| items      N trained on events, N initialized from the catalogue
! epoch 1/2 loss 2.844 N events/s, N s
! epoch 2/2 loss 2.562 N events/s, N s
$ lapse pretrain c.lapse -o w.safetensors --catalogue items.csv --dims 8 --epochs 2 2>/dev/null >/dev/null; cmp v.safetensors w.safetensors
$ lapse pretrain c.lapse -o w.safetensors --dims 8 --epochs 1 --json 2>/dev/null
| {
|   "output": "w.safetensors",
|   "items": 224,
|   "occur": 211,
|   "described": 0,
|   "unknown": 13,
|   "seconds": N
| }
$ gzip -k items.csv; lapse pretrain c.lapse -o w.safetensors --catalogue items.csv.gz --dims 8 --epochs 1 2>/dev/null | head -1
| wrote      300 item vectors of 8 dimensions to w.safetensors in N s
$ lapse pretrain c.lapse -o w.safetensors --catalogue items.csv --words name,colour
! lapse: items.csv:1: there is no column 'colour' for words; the columns are: item, name, brand, category
= 1
$ lapse pretrain c.lapse -o w.safetensors --catalogue none.csv
! lapse: none.csv: cannot open: No such file or directory
= 1
$ (cat items.csv; echo i7,again,X,y) | lapse pretrain c.lapse -o w.safetensors --catalogue -
! lapse: standard input:302:1: item 'i7' has two rows: the first is line 8
= 1
$ lapse pretrain c.lapse -o c.lapse
! lapse: --output c.lapse would overwrite DATA c.lapse
! lapse: see `lapse pretrain --help`
= 2
$ lapse pretrain c.lapse -o - 
! lapse: item vectors cannot be written to standard output
! lapse: see `lapse pretrain --help`
= 2
$ lapse pretrain c.lapse -o w.safetensors --dims 0
! lapse: dims must be from 1 to 4096, not 0
= 2
$ lapse pretrain c.lapse -o w.safetensors --split-by moon
! lapse: --split-by takes one of column, sequence, leave-one-out, time, session, not 'moon'
! lapse: see `lapse pretrain --help`
= 2
$ lapse info v.safetensors
| file                 v.safetensors (item vectors)
| items                300
| dims                 8
| window               5
| session_gap          0
| negative_count       5
| popularity_power     0.75
| learning_rate        0.05
| epochs               2
| seed                 1
| split_by             leave-one-out
| features             152
| catalogue            items.csv
| dataset.fingerprint  97ed0b09e03c845a

# A recommender initialized with item vectors knows all catalogue items; vectors of another split or width are errors.
$ lapse train c.lapse -o m.safetensors --task recommend --item-vectors v.safetensors --epochs 1 --blocks 1 --no-eval --checkpoint none 2>/dev/null | grep -c saved
| 1
$ lapse info m.safetensors --all | grep -E "^(event_types|items|train.item_vectors)"
| event_types           300
| train.item_vectors    v.safetensors
$ lapse eval m.safetensors c.lapse --negatives 0 --bootstrap 0 | grep candidates
| candidates        289.5   300.0
$ lapse train c.lapse -o m.safetensors --task recommend --item-vectors v.safetensors --dims 16 2>&1 | tail -1
| lapse: the item vectors have 8 numbers each and the model 16 dims; train with --dims 8, or pretrain with --dims 16
$ lapse train c.lapse -o m.safetensors --task recommend --item-vectors v.safetensors --split-by sequence 2>&1 | tail -1
| lapse: these item vectors were learned with --split-by leave-one-out and seed 1, so they may have read what this run (--split-by sequence, seed 1) holds out; pretrain with the same two
$ lapse train c.lapse -o m.safetensors --item-vectors v.safetensors
! lapse: item vectors are for the task recommend, not for classify
= 2
$ lapse train c.lapse -o m2.safetensors --task recommend --item-vectors m.safetensors
! lapse: m.safetensors: these are not item vectors that can be used: the file holds something else; `lapse pretrain` makes item vectors
= 1
