$ lapse import events.csv -o events.lapse >/dev/null

# The progress bar on a terminal: one line that is redrawn and fits the width.
$ script -qec 'stty cols 100; lapse train events.lapse -o m.safetensors --epochs 2 --dims 8 --no-eval' /dev/null \
  | sed -E 's/\r$//; s/.*\x1b\[K//' | grep -a '^epoch' | sed -E 's/ [0-9.]+k?/ N/g'
| epoch N/2 loss N valid log-loss N, accuracy N % (best N, epoch N) N events/s, N s
| epoch N/2 loss N valid log-loss N, accuracy N % (best N, epoch N) N events/s, N s
$ script -qec 'stty cols 100; lapse train events.lapse -o m.safetensors --epochs 2 --dims 8 --no-eval' /dev/null \
  | tr '\r' '\n' | sed -nE '/^epoch.*\x1b\[K$/p' | head -1 | sed -E 's/\x1b\[K//; s/\[[=> ]*\]/[=]/; s/[0-9][0-9.:]*k?/N/g; s/N s to N s/N s/; s/N to N$/N/'
| epoch N/N [=] loss N N events/s N s left
$ script -qec 'stty cols 40; lapse train events.lapse -o m.safetensors --epochs 2 --dims 8 --no-eval' /dev/null \
  | tr '\r' '\n' | sed -nE 's/^(epoch.*)\x1b\[K$/\1/p' | awk 'length > 39' | wc -l
| 0
