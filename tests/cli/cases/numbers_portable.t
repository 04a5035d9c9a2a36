# A checksum of losses, scores and predictions for options of training: a change of any number shows. numbers.sh says of what. What
# has changed is seen by running its commands before and after.
$ lapse simulate -o shop.csv --sequences 36 --days 60 --seed 3 && lapse import shop.csv -o shop.lapse --event action,item --action action --field category >/dev/null
| wrote      648 events to shop.csv in N s
$ lapse simulate --preset catalogue --items 200 --sequences 80 --days 300 --seed 5 -o items.csv && lapse import items.csv -o items.lapse --event item --field category >/dev/null
| wrote      1,220 events to items.csv in N s
$ ./numbers.sh <numbers.txt
| 3273704945 shop --encoding mercer
| 916872824 shop --encoding mercer --combine add --heads 3 --blocks 1 --periods 4 --harmonics 3 --dropout 0
| 2634716718 shop --encoding mercer --projection mlp-query --period-min 1h --period-max 20d --periods-fixed
| 1162152686 shop --encoding mercer --projection mlp --windows each --context 9
| 4002095030 shop --encoding bochner --period-init random --heads 1
| 23597464 shop --encoding bochner-normal --period-init linear --frequency-samples 3
| 1541559900 shop --encoding bochner-normal --frequency-scale linear --independent-draws
| 4243201254 shop --encoding bochner-invcdf --hidden 9 --frequency-samples 2 --periods 5
| 3105801379 shop --encoding bochner-invcdf --inverse-cdf mlp --hidden 7 --periods 4
| 3450588944 shop --encoding bochner-invcdf --inverse-cdf maf --hidden 7 --periods 4
| 1863824107 shop --encoding bochner-invcdf --inverse-cdf iaf --hidden 7 --periods 4
| 1152568506 shop --encoding bochner-invcdf --inverse-cdf nvp --hidden 7 --periods 4
| 1770874151 shop --encoding random --periods 7 --period-init paper-frequency
| 3739653383 shop --encoding position --context 11
| 422221020 shop --encoding sinusoid --gap-input on
| 1596165258 shop --encoding none --target-time unknown --blocks 3
| 2484722839 shop --target-time unknown --period-init paper
| 643886237 shop --when --when-components 3 --when-background none
|     lapse: the chances are too high for histories that end for good or were cut off: the model was trained with --censoring off. Train it with --censoring on, and --split-by sequence, time or session
| 2681238037 shop --when --when-background constant --censoring off --when-floor 1m
| 1223297786 shop --when --when-background week --split-by sequence --censoring on
| 2742079809 shop --predict both --field-dims 3
| 4203500191 shop --predict action --gap-input off
| 1761720751 shop --target action=buy
| 1649076881 shop --learning-rate 0.02 --schedule cosine --epochs 4 --ema-decay 0.5
| 1877469753 shop --beta1 0.8 --beta2 0.99 --l2 0.01 --clip 0.3
| 594599266 shop --clip 0 --batch 5 --shards 3 --seed 9 --epochs 5 --patience 1 --select accuracy
| 68755642 shop --windows last --context 7
| 2140533713 shop --split-by time
| 2893775317 shop --split-by session
| 1098748149 shop --split-by leave-one-out
| 149017088 shop --model lstm --layers 2
| 2283097144 shop --model lstm --layers 3 --encoding mercer --gap-input on
| 89219313 shop --model lstm --when
| 4115126047 shop --model rmtpp
| 2624764557 shop --model rmtpp --time-unit 1h --time-weight 0.5 --censoring on
| 1000887206 shop --model timejoint --buckets 9 --duration-weight 0.4
| 2688461946 shop --model timejoint --duration-weight 0
| 2745480181 shop --model rnn-attention
| shop --model timejoint --cell gru --layers 2: lapse: the model 'timejoint' has no option --cell
| 3646110880 shop --model markov --order 1
| 3132345101 shop --model markov --order 3
| 2393221395 shop --model majority
| 318633103 items --task recommend
| 2092487832 items --task recommend --loss softmax --dims 32 --item-output separate
| 2750179911 items --task recommend --loss sampled-softmax --negative-count 30 --negatives popularity --popularity-power 0.5
| 4117822117 items --task recommend --loss sampled-softmax --negatives in-batch
| 2095991677 items --task recommend --loss bce --negative-count 4 --negatives-unseen --select hit@10
| 3871142569 items --task recommend --loss bpr --negatives popularity --select mrr
| 3315736720 items --task recommend --loss bpr-max --negative-count 20 --score-regularization 0.3
| 4175507232 items --task recommend --loss top1 --negative-count 5
| 2623969567 items --task recommend --loss top1-max --negative-count 7 --negatives uniform
|     lapse: the chances are too high for histories that end for good or were cut off: the model was trained with --censoring off. Train it with --censoring on, and --split-by sequence, time or session
| 1146565127 items --task recommend --when --encoding bochner
| 3312277602 items --task recommend --model sasrec --context 6
| 2768194614 items --task recommend --model lstm
| 2937832892 items --task recommend --model gru4rec
| 120976920 items --task recommend --model gru4rec --preset 2016
| 4261048085 items --task recommend --model gru4rec --preset 2018 --layers 2
| 3140519106 items --task recommend --model caser --conv-length 3 --conv-filters 4
| 3579338344 items --task recommend --model caser --conv-vertical 0 --conv-targets 1
| 4189589350 items --task recommend --model transrec
| 2398732737 items --task recommend --model transrec --distance l1
| 3933849608 items --task recommend --model item-markov
| 2061302305 items --task recommend --model recency
| 1897122070 items --task recommend --model popularity
| 2164538612 items --task recommend --split-by time --batch 3
