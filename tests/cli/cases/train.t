# The floors are counted, so their scores are exact everywhere.
$ lapse import events.csv -o events.lapse >/dev/null
$ lapse train events.lapse -o markov.safetensors --model markov --order 1 --seed 3
$ lapse train events.lapse -o majority.safetensors --model majority --seed 3 --json
$ lapse eval markov.safetensors events.lapse --split all --classes
$ lapse eval markov.safetensors events.lapse --split valid --bootstrap 0 --json
$ ls

# Attention: the shape of what is told. Numbers that depend on the machine's arithmetic are written as N.
$ lapse train events.lapse -o m.safetensors --epochs 2 --dims 8 --context 16 --periods 4 --harmonics 2 --batch 4 \
  --seed 3 --threads 1 --no-eval 2>&1 | sed -E 's/(loss|accuracy|best|with) [0-9.]+/\1 N/g; s/(best was )?epoch [0-9]+( of|\))/\1epoch N\2/'
$ ls m.safetensors*
$ lapse eval m.safetensors events.lapse | sed -E 's/[0-9]+\.[0-9]+/N/g'

# The progress bar on a terminal: one line, redrawn, that fits.
$ script -qec 'stty cols 100; lapse train events.lapse -o m.safetensors --epochs 2 --dims 8 --no-eval' /dev/null \
  | tr '\r' '\n' | grep -a '^epoch 2/2 .*\[=*\]' | tail -1 | sed -E 's/\x1b\[K//; s/=+/=/; s/ [0-9.]+k?/ N/g'
$ script -qec 'stty cols 40; lapse train events.lapse -o m.safetensors --epochs 2 --dims 8 --no-eval' /dev/null \
  | tr '\r' '\n' | grep -a '^epoch' | sed -E 's/\x1b\[K//' | awk 'length > 39' | wc -l

# Ctrl-C: stops at the end of the step, keeps the best model, tells how to go on.
$ lapse train events.lapse -o stopped.safetensors --epochs 1000000 --patience 1000000 --dims 8 2>log & \
  for i in $(seq 600); do grep -q 'epoch 2/' log && break; sleep 0.05; done; kill -INT $!; wait $!; echo "exit $?"; \
  grep '^lapse:' log | sed -E 's/epoch [0-9]+/epoch N/g; s/[0-9.]+ %/N %/'; ls stopped*; \
  lapse info stopped.safetensors | head -1
$ lapse train events.lapse -o stopped.safetensors --epochs 1000000 --patience 1000000 --dims 8 --checkpoint none 2>log2 & \
  for i in $(seq 600); do grep -q 'epoch 2/' log2 && break; sleep 0.05; done; kill -TERM $!; wait $!; echo "exit $?"; \
  tail -1 log2

# What cannot be trained is refused before anything is done.
$ lapse train nothing.lapse -o m.safetensors
$ lapse train events.csv -o m.safetensors
$ lapse train events.lapse -o no/such/folder/m.safetensors
$ mkdir folder; lapse train events.lapse -o folder
$ lapse train events.lapse -o m.safetensors --blocks 9
$ lapse train events.lapse -o m.safetensors --dims 10 --heads 3
$ lapse train events.lapse -o m.safetensors --dropout 2
$ lapse train events.lapse -o m.safetensors --model markov --order 7
$ lapse eval nothing.safetensors events.lapse
$ lapse eval events.lapse events.lapse
$ lapse eval markov.safetensors markov.safetensors
$ printf 'user,time,event\na,1,wave\na,2,wave\n' >other.csv; lapse import other.csv -o other.lapse >/dev/null; \
  lapse eval markov.safetensors other.lapse --split all
