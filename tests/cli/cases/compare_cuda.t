# On a GPU, two processes train the runs of a comparison, and the table is that of one process.
$ lapse import events.csv -o events.lapse >/dev/null
$ options="--models attention --encodings position,none --seeds 2 --epochs 1 --dims 4 --blocks 1 --heads 1 --context 4 --device cuda"; \
  lapse compare events.lapse $options --parallel 1 --keep one --no-times >one.txt 2>/dev/null && \
  lapse compare events.lapse $options --parallel 2 --keep two --no-times >two.txt 2>/dev/null && \
  cmp one.txt two.txt && ls two | wc -l
| 5
# A search in two processes: their folder beside the model is deleted at the end.
$ lapse tune events.lapse -o best.st --trials 3 --parallel 2 --epochs 1 --dims 4 --blocks 1 --context 4 --device cuda >out 2>/dev/null && \
  lapse info best.st | grep -c 'tune.trial\.'; ls -d best.st*
| 3
| best.st
