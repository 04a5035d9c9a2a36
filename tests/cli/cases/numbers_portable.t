# A checksum of losses, scores and predictions for options of training: a change of any number shows. numbers.sh says of what. What
# has changed is seen by running its commands before and after.
$ lapse simulate -o shop.csv --sequences 36 --days 60 --seed 3 && lapse import shop.csv -o shop.lapse --event action,item --action action --field category >/dev/null
| wrote      648 events to shop.csv in N s
$ lapse simulate --preset catalogue --items 200 --sequences 80 --days 300 --seed 5 -o items.csv && lapse import items.csv -o items.lapse --event item --field category >/dev/null
| wrote      1,220 events to items.csv in N s
$ sed -n 1,12p numbers.txt | ./numbers.sh
| 1091054445 shop --encoding mercer
| 3871500655 shop --encoding mercer --combine add --heads 3 --blocks 1 --periods 4 --harmonics 3 --dropout 0
| 3632245921 shop --encoding mercer --projection mlp-query --period-min 1h --period-max 20d --periods-fixed
| 1247641689 shop --encoding mercer --projection mlp --windows each --context 9
| 3053666119 shop --encoding bochner --period-init random --heads 1
| 1685461556 shop --encoding bochner-normal --period-init linear --frequency-samples 3
| 1861858844 shop --encoding bochner-normal --frequency-scale linear --independent-draws
| 259714827 shop --encoding bochner-invcdf --hidden 9 --frequency-samples 2 --periods 5
| 3089055737 shop --encoding bochner-invcdf --inverse-cdf mlp --hidden 7 --periods 4
| 589363793 shop --encoding bochner-invcdf --inverse-cdf maf --hidden 7 --periods 4
| 4137709692 shop --encoding bochner-invcdf --inverse-cdf iaf --hidden 7 --periods 4
| 1368195152 shop --encoding bochner-invcdf --inverse-cdf nvp --hidden 7 --periods 4
$ sed -n 13,24p numbers.txt | ./numbers.sh
| 3586654935 shop --encoding random --periods 7 --period-init paper-frequency
| 787297380 shop --encoding position --context 11
| 3765961369 shop --encoding sinusoid --gap-input on
| 3061886632 shop --encoding none --target-time unknown --blocks 3
| 625321163 shop --target-time unknown --period-init paper
| 2366691809 shop --when --when-components 3 --when-background none
|     lapse: the chances are too high for histories that end for good or were cut off: the model was trained with --censoring off. Train it with --censoring on, and --split-by sequence, time or session
| 3504353498 shop --when --when-background constant --censoring off --when-floor 1m
| 916392391 shop --when --when-background week --split-by sequence --censoring on
| 2404648475 shop --predict both --field-dims 3
| 1807080445 shop --predict action --gap-input off
| 1931419567 shop --target action=buy
| 1477993265 shop --learning-rate 0.02 --schedule cosine --epochs 4 --ema-decay 0.5
$ sed -n 25,36p numbers.txt | ./numbers.sh
| 2890080807 shop --beta1 0.8 --beta2 0.99 --l2 0.01 --clip 0.3
| 121100408 shop --clip 0 --batch 5 --shards 3 --seed 9 --epochs 5 --patience 1 --select accuracy
| 1305973773 shop --windows last --context 7
| 2150316891 shop --split-by time
| 3846471389 shop --split-by session
| 1376163993 shop --split-by leave-one-out
| 1759436263 shop --model lstm --layers 2
| 1764922877 shop --model lstm --layers 3 --encoding mercer --gap-input on
| 3831212222 shop --model lstm --when
| 3091088393 shop --model rmtpp
| 597126627 shop --model rmtpp --time-unit 1h --time-weight 0.5 --censoring on
| 4097610657 shop --model timejoint --buckets 9 --duration-weight 0.4
$ sed -n 37,48p numbers.txt | ./numbers.sh
| 3008024073 shop --model timejoint --duration-weight 0
| 1371529769 shop --model rnn-attention
| shop --model timejoint --cell gru --layers 2: lapse: the model 'timejoint' has no option --cell
| 376123225 shop --model markov --order 1
| 2228687035 shop --model markov --order 3
| 1786895127 shop --model majority
| 3977825554 items --task recommend
| 1620962449 items --task recommend --loss softmax --dims 32 --item-output separate
| 2242085518 items --task recommend --loss sampled-softmax --negative-count 30 --negatives popularity --popularity-power 0.5
| 1925917370 items --task recommend --loss sampled-softmax --negatives in-batch
| 2319249621 items --task recommend --loss bce --negative-count 4 --negatives-unseen --select hit@10
| 1849609084 items --task recommend --loss bpr --negatives popularity --select mrr
$ sed -n '49,$'p numbers.txt | ./numbers.sh
| 3185563110 items --task recommend --loss bpr-max --negative-count 20 --score-regularization 0.3
| 2233527553 items --task recommend --loss top1 --negative-count 5
| 3484996354 items --task recommend --loss top1-max --negative-count 7 --negatives uniform
|     lapse: the chances are too high for histories that end for good or were cut off: the model was trained with --censoring off. Train it with --censoring on, and --split-by sequence, time or session
| 2903215272 items --task recommend --when --encoding bochner
| 3063261831 items --task recommend --model sasrec --context 6
| 4083808593 items --task recommend --model lstm
| 855543859 items --task recommend --model gru4rec
| 3412998953 items --task recommend --model gru4rec --preset 2016
| 1661673353 items --task recommend --model gru4rec --preset 2018 --layers 2
| 2571556589 items --task recommend --model caser --conv-length 3 --conv-filters 4
| 3397477592 items --task recommend --model caser --conv-vertical 0 --conv-targets 1
| 1041385467 items --task recommend --model transrec
| 4163458492 items --task recommend --model transrec --distance l1
| 830470730 items --task recommend --model item-markov
| 3104374396 items --task recommend --model recency
| 2244705798 items --task recommend --model popularity
| 342180046 items --task recommend --split-by time --batch 3
