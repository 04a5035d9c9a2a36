# Checksums of what commands print and write, for the options of every verb: a change of any character shows. What has changed is seen by
# running a command before and after.
$ lapse simulate -o shop.csv --sequences 36 --days 60 --seed 3 >/dev/null; lapse simulate --preset catalogue --items 200 --sequences 80 --days 300 --seed 5 -o items.csv --catalogue catalogue.csv >/dev/null
$ head -60 shop.csv >first.csv; { head -9 shop.csv; echo 'u90,soon,tea,view,x'; echo 'u90,2026-01-07T01:00:00Z,"=1+1",view,x'; echo 'u91,1767800000.5,tea,view,'; echo 'u92,1767900000,=tea,buy,a,b'; } >odd.csv
$ lapse import shop.csv -o shop.lapse --event action,item --action action --field category >/dev/null; lapse import items.csv -o items.lapse --event item --field category >/dev/null
$ while read -r name data options; do lapse train $data -o $name.st --threads 1 --epochs 2 --checkpoint none --no-eval $options >/dev/null 2>&1 || echo $name; done <models.txt
$ grep -E '^(predict) ' commands.txt | ./commands.sh
| 2504538264 predict m.st first.csv --at +1h
| 3809847819 predict m.st first.csv --at +1h --at +2d --at 2026-05-01 --top 3
| 3850347269 predict m.st first.csv --at +1h --csv
| 2174894200 predict m.st first.csv --at +1h --top 2 --json --threads 3
| 2657161390 predict m.st first.csv --at +1h --only u2 --only u3
| 501731531 predict m.st first.csv --at +1h --unseen --csv --csv-safe
| 2752461325 predict r.st items.csv --at +1h --vectors out.csv; cat out.csv; rm -f out.csv
| 1228678669 predict m.st first.csv --when
| 2461963650 predict m.st first.csv --when --now 2026-06-01 --within 1d,30d --csv
| 959850841 predict m.st first.csv --when --now end --within 12h --top 2 --json
| 2366644882 predict m.st shop.csv --at +3d --csv -o out
| 2347855956 predict m.st shop.csv --when --within 2d --csv -o out
| 1668812357 predict m.st first.csv --at +1h --session-gap 1d --min-events 3
| 2257059918 predict m.st first.csv --at +1h --deduplicate consecutive --basket
| 562464488 predict m.st odd.csv --at +1h --unknown skip --bad-rows skip
| 1144623989 status 1 predict m.st odd.csv --at +1h --unknown error --bad-rows skip --top 1
| 1144623989 status 1 predict m.st odd.csv --at +1h --bad-rows skip --json
| 1794994270 predict l.st first.csv --at +1h --top 16
| 2119633017 predict k.st first.csv --at +1h --csv
| 2982524590 predict t.st first.csv --when --within 1d --json
| 428088264 predict t.st first.csv --at +1d --csv
| 3068199797 predict r.st items.csv --at +1h --csv
| 1469534138 predict r.st items.csv --at +1h --unseen --top 20 --csv
| 2357820393 predict r.st items.csv --at +9d --json --only u7
| 307141392 predict g.st items.csv --at +1h --csv
| 1581591568 predict e.st items.csv --at +1h --csv --top 7
| 1032057069 predict p.st items.csv --at +1h --csv --unseen
| 3473385762 predict q.st items.csv --at +1h --top 3
| 6273245 predict m.st first.csv --at +1h --top 0
| 4231392073 predict m.st first.csv --at +1h --top 99 --only u1
| 3929154143 predict m.st first.csv --when --within 0d
| 188784200 status 1 predict m.st first.csv --at 2020-01-01
| 2351843303 status 2 predict m.st first.csv --at soon
| 1217782791 status 2 predict m.st first.csv
$ grep -E '^(forecast|kernel) ' commands.txt | ./commands.sh
| 2378831014 forecast m.st first.csv --horizon 2d --samples 20
| 3832400261 forecast m.st first.csv --horizon 2d --samples 20 --csv --seed 5
| 303992767 forecast m.st first.csv --horizon 12h --samples 9 --json --top 3 --threads 3
| 2104077939 forecast m.st first.csv --horizon 3d --now 2026-06-01 --samples 8 --only u2
| 2777520027 forecast m.st first.csv --horizon 30d --samples 5 --max-events 200
| 2837351468 forecast t.st first.csv --horizon 2d --samples 6 --csv
| 3811286930 forecast r.st items.csv --horizon 5d --samples 3
| 1537459099 kernel m.st
| 3935203415 kernel m.st --json --points 30
| 1901760689 kernel m.st --axis log --from 1m --to 20d --points 25 --csv
| 3714584958 kernel m.st --part phi --top 4
| 3103064928 kernel m.st --svg out
| 3867304216 kernel b.st --json --points 20
| 1370264914 kernel b.st --axis linear --from 1h --to 2d --points 20
| 2892442381 kernel n.st --svg out --points 50
| 4121872393 status 2 kernel l.st
| 1564516869 status 2 forecast m.st first.csv --horizon 2d --samples 0
| 88772060 forecast m.st first.csv --horizon 1h --samples 1 --csv
| 1240313685 status 2 forecast m.st first.csv --horizon 0s
| 91414683 forecast m.st first.csv --horizon 1h --max-events 0
| 758393091 status 2 kernel m.st --points 1
| 4053262448 kernel m.st --points 2 --json
| 767343596 status 2 kernel m.st --from 2d --to 1h
| 163151628 kernel r.st --top 3
| 2236741295 kernel r.st --csv --part spectrum
$ grep -E '^(eval|info|check) ' commands.txt | ./commands.sh
| 2395489282 eval m.st shop.lapse
| 750532798 eval m.st shop.lapse --split all --bootstrap 9
| 2251754121 eval m.st shop.lapse --split valid --classes --bootstrap 0
| 2036420584 eval m.st shop.lapse --split all --slices --bootstrap 5
| 1016492309 eval m.st shop.lapse --split all --within 1d,5d --samples 3 --bootstrap 5
| 881850697 eval m.st shop.lapse --split all --within 1d --now 2026-02-01 --bootstrap 5 --json
| 2647658810 eval m.st shop.csv --split all --cases 30 --json
| 589551679 eval b.st shop.lapse --split all --target action=buy --bootstrap 3
| 242769418 eval b.st shop.lapse --split all --classes --json
| 37175399 eval l.st shop.lapse --split all --bootstrap 4
| 1840629076 eval t.st shop.lapse --split all --bootstrap 4 --json
| 1547890904 eval k.st shop.lapse --split train --bootstrap 4
| 3361609337 eval r.st items.lapse --split all --cutoffs 1,5,20 --negatives 20 --negative-seed 4 --bootstrap 5
| 3732760836 eval r.st items.lapse --split all --slices --cases 50 --bootstrap 5
| 153652033 eval r.st items.lapse --split valid --json
| 1647144527 eval e.st items.lapse --split all --slices --json --bootstrap 5
| 3670169873 eval q.st items.lapse --split all --bootstrap 5
| 3343204281 info m.st --all
| 987769136 info m.st --json --history
| 4271123816 info r.st --vectors out.csv; cat out.csv; rm -f out.csv
| 1982977386 info r.st --json --event-types
| 3799701670 info shop.lapse --json --event-types
| 2677054553 info items.csv --event-types
| 1420951036 check shop.lapse --now 2027-01-01
| 1668974889 check items.lapse --task recommend --split-by leave-one-out --now 2027-01-01 --json
| 3368267669 check shop.csv --event action,item --split-by time --now 2026-02-01 --json
| 2006214489 check odd.csv --event item --bad-rows skip --now 2027-01-01
| 1742079108 status 1 info v.st --json
| 3804518214 status 2 eval r.st items.lapse --cutoffs 0
| 2487671670 eval r.st items.lapse --cutoffs 1,2,3,4,5,6,7,8,9
| 2506002080 eval r.st items.lapse --cutoffs 5,5
| 1871500623 status 2 eval r.st items.lapse --negatives -1
| 3379150737 eval r.st items.lapse --cases 0
| 1445958743 status 2 eval m.st shop.lapse --bootstrap -1
| 468191784 status 1 eval m.st items.lapse
| 3584164561 eval m.st shop.lapse --classes --json
| 2395489282 eval m.st shop.lapse --cutoffs 3
| 676693539 status 1 info missing.lapse
| 244213257 status 1 info text
| 2931827445 status 2 check shop.lapse --split-by none
| 2957793433 check items.lapse --now 2026-01-01
$ grep -E '^(bound|simulate|pretrain) ' commands.txt | ./commands.sh
| 942741560 bound --tmax 2h --sigma 1/2h --epsilon 0.3 --delta 0.05 --repeats 6 --seed 2 --json
| 972006096 bound --tmax 30d --sigma 1/1d --epsilon 0.2
| 1036803170 pretrain items.lapse -o v.st --catalogue catalogue.csv --dims 6 --epochs 2 --seed 3
| 765823563 pretrain items.lapse -o v.st --dims 6 --epochs 2 --window 2 --negative-count 3 --popularity-power 0.5 --json
| 3760471175 bound --tmax 0.1d --sigma 1/7h --epsilon 0.37 --delta 0.033 --repeats 3 --json
| 113280510 status 2 bound --tmax 2h --sigma 1/2h --epsilon 0
| 3939833573 status 2 bound --tmax 2h --sigma 1/2h --epsilon 1 --delta 0
| 2398995823 status 2 bound --tmax 2h --sigma 1/2h --epsilon 0.5 --delta 1
| 843492100 status 2 bound --tmax 0s --sigma 1/2h --epsilon 0.5
| 354286142 bound --tmax 2h --sigma 1/2h --epsilon 0.5 --repeats 0
| 4246631108 status 2 simulate -o out --days -0.5
| 581581773 simulate -o out --days 0.25 --sequences 3
| 1719941961 status 2 simulate -o out --days 36501 --sequences 1
| 2086104345 simulate -o out --sequences 0 --days 1
| 693731412 status 2 simulate -o out --sequences -1
| 2431939152 status 2 simulate -o out --preset sessions --items 499
| 372453792 simulate -o out --preset sessions --items 500 --sequences 2
| 3500556159 simulate -o out --preset catalogue --items 100 --sequences 2
| 1550019990 status 2 simulate -o out --preset shop --items 100
| 100238235 status 2 simulate -o out --preset shop --catalogue c.csv
| 1177623757 status 2 pretrain items.lapse -o w.st --window 0
| 1515305942 status 2 pretrain items.lapse -o w.st --dims 0
| 1572210263 status 2 pretrain items.lapse -o w.st --epochs 0
| 551984793 status 2 pretrain items.lapse -o w.st --negative-count 0
| 3512136878 status 2 pretrain items.lapse -o w.st --learning-rate 0
| 3656577065 status 2 pretrain items.lapse -o w.st --popularity-power -1
| 2276980099 pretrain items.lapse -o w.st --dims 1 --window 1 --epochs 1 --negative-count 1 --session-gap 1d
$ grep -E '^(import) ' commands.txt | ./commands.sh
| 4125430980 import shop.csv -o out --event action,item --action action --field category --session-gap 5h --min-events 3 --min-count 4
| 3203739903 import shop.csv -o out --event item --min-sequence-events 5 --min-users 3 --min-rounds iterated --deduplicate exact --json
| 3125045762 import shop.csv -o out --event item --timezone Europe/Berlin --basket --threads 3
| 1285452416 import items.csv -o out --event item --field category --deduplicate consecutive
| 974484987 import items.csv -o out --sequence 1 --time 2 --event 3 --no-header --bad-rows skip
| 1092369571 import odd.csv -o out --event item --action action --bad-rows skip --json
| 3190957715 status 1 import odd.csv -o out --event item
| 379735339 import odd.csv -o out --event item --time-unit ms --bad-rows skip
| 1535370228 status 2 import shop.csv -o out --event item --min-users -1
| 3744853033 import shop.csv -o out --event item --min-count 0
| 1097899104 import shop.csv -o out --event item --min-events 0
| 1350203024 import shop.csv -o out --event item --session-gap 0s
| 2409217526 import shop.csv -o out --event item --session-gap 1s
| 1873399304 status 1 import shop.csv -o out --event nothing
| 2206157891 status 1 import shop.csv -o out --event item --delimiter ';'
| 1146846252 status 2 import shop.csv -o out --event item --timezone Nowhere/Else
| 4021097991 import shop.csv -o out --event item --timezone +02:00 --json
| 810910750 status 1 import shop.csv -o out --event item --min-count 100000
| 3152676396 status 2 import shop.csv -o out --event item --memory 1
| 1350203024 import shop.csv -o out --event item --memory 64M
$ grep -E '^(train|compare|inspect|bench) ' commands.txt | ./commands.sh
| 152107510 train items.lapse -o w.st --task recommend --item-vectors v.st --dims 6 --blocks 1 --epochs 1 --no-eval --threads 1 --checkpoint none --json
| 1140249386 train shop.lapse -o w.st --model markov --json --threads 1
| 3203240617 train shop.lapse -o w.st --model majority --threads 1
| 1919620028 train items.lapse -o w.st --task recommend --model popularity --json --threads 1
| 914265760 train shop.lapse -o w.st --like m.st --epochs 1 --threads 1 --checkpoint none --no-eval --json
| 1105979279 status 2 compare shop.lapse --models majority --seeds 0 --keep none
| 1291452159 status 2 compare shop.lapse --models majority --seeds 5..3 --keep none
| 3049197339 status 2 compare shop.lapse --models majority --seeds 2,2 --keep none
| 403969235 compare shop.lapse --models majority --seeds 7..7 --keep none --format csv | sed -E 's/(,[^,]*){3}$//'
| 2361624582 status 2 compare shop.lapse --models majority,majority --seeds 1 --keep none
| 3734693841 status 2 compare shop.lapse --models nothing --seeds 1 --keep none
| 4201407566 status 2 compare shop.lapse --models markov --grid order=4 --seeds 1 --keep none
| 2657499479 status 2 compare shop.lapse --models markov --grid nothing=4 --seeds 1 --keep none
| 3620232010 status 2 compare shop.lapse --model markov --encodings mercer --seeds 1 --keep none
| 3503527843 status 2 train shop.lapse -o w.st --dims 0 --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 3593515124 status 2 train shop.lapse -o w.st --heads 9 --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 758228482 status 2 train shop.lapse -o w.st --dims 7 --heads 2 --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 3028314910 status 2 train shop.lapse -o w.st --dropout 0.91 --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 2198973506 status 2 train shop.lapse -o w.st --context 0 --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 2630017812 status 2 train shop.lapse -o w.st --periods 0 --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 919912765 status 2 train shop.lapse -o w.st --period-min 2d --period-max 1d --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 3496407139 train shop.lapse -o w.st --encoding none --harmonics 3 --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 541199317 status 2 train shop.lapse -o w.st --when --projection mlp --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 3731170736 train shop.lapse -o w.st --when-components 3 --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 2456950076 train shop.lapse -o w.st --task recommend --loss bce --negatives in-batch --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 1743796453 status 2 train shop.lapse -o w.st --loss bce --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 835986248 status 1 train shop.lapse -o w.st --target action=nothing --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 1571739705 status 2 train shop.lapse -o w.st --predict nothing --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 2701185790 status 2 train shop.lapse -o w.st --model markov --order 4
| 3164831528 status 1 train items.lapse -o w.st --predict action --epochs 1 --blocks 1 --threads 1 --no-eval --checkpoint none
| 1364664106 inspect m.st shop.lapse -o out --cases 3 --case-studies 0 --bootstrap 0
| 3874727125 status 2 inspect m.st shop.lapse -o out --case-studies -1
| 2507479057 inspect m.st shop.lapse -o out --block 0
| 2809197752 status 2 bench --preset nothing
