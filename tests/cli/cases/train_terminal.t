$ lapse import events.csv -o events.lapse >/dev/null

# The progress bar on a terminal: one line that is redrawn and fits the width.
$ script -qec 'stty cols 100; lapse train events.lapse -o m.safetensors --epochs 2 --dims 8 --no-eval' /dev/null \
  | tr '\r' '\n' | grep -a '^epoch 2/2 .*\[=*\]' | tail -1 | sed -E 's/\x1b\[K//; s/=+/=/; s/ [0-9.]+k?/ N/g'
| epoch N/2 [=] loss N accuracy N % (best N %, epoch N) N events/s N s left
$ script -qec 'stty cols 40; lapse train events.lapse -o m.safetensors --epochs 2 --dims 8 --no-eval' /dev/null \
  | tr '\r' '\n' | grep -a '^epoch' | sed -E 's/\x1b\[K//' | awk 'length > 39' | wc -l
| 0
