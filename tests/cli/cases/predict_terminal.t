$ lapse import events.csv -o events.lapse >/dev/null; for i in $(seq 30); do sed -n "2,3s/^[^,]*/u$i/p" history.csv; done | cat <(echo user,time,event) - >many.csv
$ lapse train events.lapse -o m.safetensors --model markov --no-eval >/dev/null 2>&1

# A table on a terminal ends after 20 histories; files and pipes have all.
$ script -qec 'lapse predict m.safetensors many.csv --at +1h --top 1' /dev/null | tr -d '\r' | sed -n '1,2p;21,$p'
| sequence  rank  at +1h
| u1           1  buy     69.1 %
| u20          1  buy     69.1 %
| lapse: the first 20 of 30 histories; -o FILE or a pipe has all, --csv and --json too
$ script -qec 'lapse predict m.safetensors many.csv --at +1h --top 1 -o out.txt; lapse predict m.safetensors many.csv --at +1h --top 1 --csv' /dev/null | wc -l
| 31
$ wc -l <out.txt; lapse predict m.safetensors many.csv --at +1h --top 1 | wc -l
| 31
| 31
