# A checksum of losses, scores and predictions for options of training: a change of any number shows. numbers.sh says of what. What
# has changed is seen by running its commands before and after.
$ lapse simulate -o shop.csv --sequences 36 --days 60 --seed 3 && lapse import shop.csv -o shop.lapse --event action,item --action action --field category >/dev/null
| wrote      648 events to shop.csv in N s
$ lapse simulate --preset catalogue --items 200 --sequences 80 --days 300 --seed 5 -o items.csv && lapse import items.csv -o items.lapse --event item --field category >/dev/null
| wrote      1,220 events to items.csv in N s
$ sed -n 1,12p numbers.txt | ./numbers.sh
| 3687109980 shop --encoding mercer
| 2894676370 shop --encoding mercer --combine add --heads 3 --blocks 1 --periods 4 --harmonics 3 --dropout 0
| 665345176 shop --encoding mercer --projection mlp-query --period-min 1h --period-max 20d --periods-fixed
| 817098459 shop --encoding mercer --projection mlp --windows each --context 9
| 1670700448 shop --encoding bochner --period-init random --heads 1
| 450104489 shop --encoding bochner-normal --period-init linear --frequency-samples 3
| 2517109875 shop --encoding bochner-normal --frequency-scale linear --independent-draws
| 3203954937 shop --encoding bochner-invcdf --hidden 9 --frequency-samples 2 --periods 5
| 30190516 shop --encoding bochner-invcdf --inverse-cdf mlp --hidden 7 --periods 4
| 2819715543 shop --encoding bochner-invcdf --inverse-cdf maf --hidden 7 --periods 4
| 2180119265 shop --encoding bochner-invcdf --inverse-cdf iaf --hidden 7 --periods 4
| 1895853174 shop --encoding bochner-invcdf --inverse-cdf nvp --hidden 7 --periods 4
$ sed -n 13,24p numbers.txt | ./numbers.sh
| 2875164193 shop --encoding random --periods 7 --period-init paper-frequency
| 229054890 shop --encoding position --context 11
| 3517142125 shop --encoding sinusoid --gap-input on
| 1262787598 shop --encoding none --target-time unknown --blocks 3
| 2979036819 shop --target-time unknown --period-init paper
| 3690272467 shop --when --when-components 3 --when-background none
|     lapse: the chances are too high for histories that end for good or were cut off: the model was trained with --censoring off. Train it with --censoring on, and --split-by sequence, time or session
| 2008669792 shop --when --when-background constant --censoring off --when-floor 1m
| 2973200235 shop --when --when-background week --split-by sequence --censoring on
| 2842532410 shop --predict both --field-dims 3
| 3034464410 shop --predict action --gap-input off
| 1178518817 shop --target action=buy
| 159360098 shop --learning-rate 0.02 --schedule cosine --epochs 4 --ema-decay 0.5
$ sed -n 25,36p numbers.txt | ./numbers.sh
| 1292515258 shop --beta1 0.8 --beta2 0.99 --l2 0.01 --clip 0.3
| 2241106306 shop --clip 0 --batch 5 --shards 3 --seed 9 --epochs 5 --patience 1 --select accuracy
| 580212597 shop --windows last --context 7
| 1172812923 shop --split-by time
| 343783977 shop --split-by session
| 1212941396 shop --split-by leave-one-out
| 285722453 shop --model lstm --layers 2
| 3693068572 shop --model lstm --layers 3 --encoding mercer --gap-input on
| 2365438765 shop --model lstm --when
| 400231331 shop --model rmtpp
| 1780666022 shop --model rmtpp --time-unit 1h --time-weight 0.5 --censoring on
| 3325071564 shop --model timejoint --buckets 9 --duration-weight 0.4
$ sed -n 37,48p numbers.txt | ./numbers.sh
| 139954986 shop --model timejoint --duration-weight 0
| 2504391197 shop --model rnn-attention
| shop --model timejoint --cell gru --layers 2: lapse: the model 'timejoint' has no option --cell
| 256048402 shop --model markov --order 1
| 2967892752 shop --model markov --order 3
| 2326516582 shop --model majority
| 1667138340 items --task recommend
| 515042212 items --task recommend --loss softmax --dims 32 --item-output separate
| 1419634530 items --task recommend --loss sampled-softmax --negative-count 30 --negatives popularity --popularity-power 0.5
| 433009434 items --task recommend --loss sampled-softmax --negatives in-batch
| 3093110019 items --task recommend --loss bce --negative-count 4 --negatives-unseen --select hit@10
| 3768975363 items --task recommend --loss bpr --negatives popularity --select mrr
$ sed -n '49,$'p numbers.txt | ./numbers.sh
| 4004996303 items --task recommend --loss bpr-max --negative-count 20 --score-regularization 0.3
| 755903073 items --task recommend --loss top1 --negative-count 5
| 3272375457 items --task recommend --loss top1-max --negative-count 7 --negatives uniform
|     lapse: the chances are too high for histories that end for good or were cut off: the model was trained with --censoring off. Train it with --censoring on, and --split-by sequence, time or session
| 1760529829 items --task recommend --when --encoding bochner
| 2351202752 items --task recommend --model sasrec --context 6
| 3353940710 items --task recommend --model lstm
| 2243647580 items --task recommend --model gru4rec
| 3933084597 items --task recommend --model gru4rec --preset 2016
| 2728928843 items --task recommend --model gru4rec --preset 2018 --layers 2
| 3122272581 items --task recommend --model caser --conv-length 3 --conv-filters 4
| 1783609178 items --task recommend --model caser --conv-vertical 0 --conv-targets 1
| 2847473940 items --task recommend --model transrec
| 3826336587 items --task recommend --model transrec --distance l1
| 2839769213 items --task recommend --model item-markov
| 2753562655 items --task recommend --model recency
| 2251439985 items --task recommend --model popularity
| 3617244162 items --task recommend --split-by time --batch 3
