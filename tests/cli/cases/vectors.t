# Vectors of items and of histories: their product is the score that the tool prints.
$ lapse import events.csv -o events.lapse >/dev/null
$ lapse train events.lapse -o r.safetensors --task recommend --dims 4 --epochs 2 --checkpoint none >/dev/null 2>&1
$ lapse info r.safetensors --vectors items.csv
$ head -n 1 items.csv
| item,v0,v1,v2,v3,bias
$ lapse predict r.safetensors history.csv --at +1h --vectors states.csv
$ cut -d, -f 1,2,7 states.csv
| sequence,time,one
| max,1769945400.000,1
| nora,1770027300.000,1
$ lapse predict r.safetensors history.csv --at +1h --top 0 --csv >scores.csv
$ awk -F, 'FNR == 1 { f++; next } f == 1 { for (c = 2; c <= 6; c++) w[$1, c] = $c } f == 2 { for (c = 3; c <= 7; c++) s[$1, c] = $c } f == 3 { x = 0; for (c = 2; c <= 6; c++) x += w[$5, c] * s[$1, c + 1]; d = x - $6; n++; if (d * d > 1e-9) print $1, $5, x, $6 } END { print n }' items.csv states.csv scores.csv
| 8
$ lapse info r.safetensors --vectors items.npy && lapse predict r.safetensors history.csv --at +1h --vectors states.npy
$ head -c 6 items.npy | tail -c 5; echo; wc -c <items.npy; wc -c <states.npy
| NUMPY
| 208
| 168
$ lapse predict r.safetensors history.csv --at +1h --vectors states.txt
! lapse: --vectors states.txt: the name of the file ends in .csv or .npy
! lapse: see `lapse predict --help`
= 2
$ lapse predict r.safetensors history.csv --at +1h --vectors states.csv --json
! lapse: --vectors writes a file of its own, without --when, --json, --csv and --output
! lapse: see `lapse predict --help`
= 2
$ lapse train events.lapse -o m.safetensors --model markov --order 1 >/dev/null 2>&1
$ lapse predict m.safetensors history.csv --at +1h --vectors states.csv
! lapse: m.safetensors has no states for --vectors: a network trained with --task recommend does
= 1
$ lapse info m.safetensors --vectors items.csv
! lapse: m.safetensors has no item vectors that --vectors could write: a network trained with --task recommend does
= 1
