# A checksum of losses, scores and predictions for options of training: a change of any number shows. numbers.sh says of what. What
# has changed is seen by running its commands before and after.
$ lapse simulate -o shop.csv --sequences 36 --days 60 --seed 3 && lapse import shop.csv -o shop.lapse --event action,item --action action --field category >/dev/null
| wrote      648 events to shop.csv in N s
$ lapse simulate --preset catalogue --items 200 --sequences 80 --days 300 --seed 5 -o items.csv && lapse import items.csv -o items.lapse --event item --field category >/dev/null
| wrote      1,220 events to items.csv in N s
$ sed -n 1,12p numbers.txt | ./numbers.sh
| 2417144852 shop --encoding mercer
| 1371269517 shop --encoding mercer --combine add --heads 3 --blocks 1 --periods 4 --harmonics 3 --dropout 0
| 2031391882 shop --encoding mercer --projection mlp-query --period-min 1h --period-max 20d --periods-fixed
| 103691938 shop --encoding mercer --projection mlp --windows each --context 9
| 925982794 shop --encoding bochner --period-init random --heads 1
| 2719038337 shop --encoding bochner-normal --period-init linear --frequency-samples 3
| 4135970410 shop --encoding bochner-normal --frequency-scale linear --independent-draws
| 1306377559 shop --encoding bochner-invcdf --hidden 9 --frequency-samples 2 --periods 5
| 1859934847 shop --encoding bochner-invcdf --inverse-cdf mlp --hidden 7 --periods 4
| 2489700959 shop --encoding bochner-invcdf --inverse-cdf maf --hidden 7 --periods 4
| 3323161622 shop --encoding bochner-invcdf --inverse-cdf iaf --hidden 7 --periods 4
| 783100210 shop --encoding bochner-invcdf --inverse-cdf nvp --hidden 7 --periods 4
$ sed -n 13,24p numbers.txt | ./numbers.sh
| 3221114544 shop --encoding random --periods 7 --period-init paper-frequency
| 1029500018 shop --encoding position --context 11
| 1017115809 shop --encoding sinusoid --gap-input on
| 2758193735 shop --encoding none --target-time unknown --blocks 3
| 4115793871 shop --target-time unknown --period-init paper
| 2237644447 shop --when --when-components 3 --when-background none
|     lapse: the chances are too high for histories that end for good or were cut off: the model was trained with --censoring off. Train it with --censoring on, and --split-by sequence, time or session
| 588865014 shop --when --when-background constant --censoring off --when-floor 1m
| 3671436652 shop --when --when-background week --split-by sequence --censoring on
| 3504484981 shop --predict both --field-dims 3
| 3632862378 shop --predict action --gap-input off
| 3474052509 shop --target action=buy
| 2015683145 shop --learning-rate 0.02 --schedule cosine --epochs 4 --ema-decay 0.5
$ sed -n 25,36p numbers.txt | ./numbers.sh
| 2256620529 shop --beta1 0.8 --beta2 0.99 --l2 0.01 --clip 0.3
| 1915744731 shop --clip 0 --batch 5 --shards 3 --seed 9 --epochs 5 --patience 1 --select accuracy
| 802825846 shop --windows last --context 7
| 3150627392 shop --split-by time
| 565338571 shop --split-by session
| 4246109708 shop --split-by leave-one-out
| 2556792889 shop --model lstm --layers 2
| 633810342 shop --model lstm --layers 3 --encoding mercer --gap-input on
| 4194441642 shop --model lstm --when
| 1265123277 shop --model rmtpp
| 2901492540 shop --model rmtpp --time-unit 1h --time-weight 0.5 --censoring on
| 2084004727 shop --model timejoint --buckets 9 --duration-weight 0.4
$ sed -n 37,48p numbers.txt | ./numbers.sh
| 2479034364 shop --model timejoint --duration-weight 0
| 1141609329 shop --model rnn-attention
| shop --model timejoint --cell gru --layers 2: lapse: the model 'timejoint' has no option --cell
| 256048402 shop --model markov --order 1
| 2967892752 shop --model markov --order 3
| 2326516582 shop --model majority
| 2637864877 items --task recommend
| 2158161414 items --task recommend --loss softmax --dims 32 --item-output separate
| 801773367 items --task recommend --loss sampled-softmax --negative-count 30 --negatives popularity --popularity-power 0.5
| 1701555719 items --task recommend --loss sampled-softmax --negatives in-batch
| 826663870 items --task recommend --loss bce --negative-count 4 --negatives-unseen --select hit@10
| 59803081 items --task recommend --loss bpr --negatives popularity --select mrr
$ sed -n '49,$'p numbers.txt | ./numbers.sh
| 665547178 items --task recommend --loss bpr-max --negative-count 20 --score-regularization 0.3
| 2839242259 items --task recommend --loss top1 --negative-count 5
| 2552550314 items --task recommend --loss top1-max --negative-count 7 --negatives uniform
|     lapse: the chances are too high for histories that end for good or were cut off: the model was trained with --censoring off. Train it with --censoring on, and --split-by sequence, time or session
| 1513545099 items --task recommend --when --encoding bochner
| 3414277293 items --task recommend --model sasrec --context 6
| 4066438617 items --task recommend --model lstm
| 1329575479 items --task recommend --model gru4rec
| 4060227106 items --task recommend --model gru4rec --preset 2016
| 3278002072 items --task recommend --model gru4rec --preset 2018 --layers 2
| 3671445302 items --task recommend --model caser --conv-length 3 --conv-filters 4
| 2016009399 items --task recommend --model caser --conv-vertical 0 --conv-targets 1
| 1348819584 items --task recommend --model transrec
| 2097669416 items --task recommend --model transrec --distance l1
| 2839769213 items --task recommend --model item-markov
| 2753562655 items --task recommend --model recency
| 2251439985 items --task recommend --model popularity
| 231900955 items --task recommend --split-by time --batch 3
