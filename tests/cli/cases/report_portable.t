# Every figure of reports on small models, as a checksum. To see what has changed, make a report before and after, and compare the
# folders parts of parts.sh.
$ lapse simulate -o shop.csv --sequences 30 --days 40 --seed 3 && lapse train shop.csv -o m.st --event action,item --action action --field category \
    --when --dims 8 --blocks 2 --heads 2 --context 12 --periods 3 --harmonics 2 --epochs 3 --threads 1 --log log >/dev/null 2>&1; sed -E 's/("seconds": ?)[0-9.e-]+/\11.5/g' log | awk '{ sub("1\\.5", NR / 4) } 1' >run.jsonl
| wrote      282 events to shop.csv in N s
$ lapse inspect m.st shop.csv -o r.html --split all --cases 200 --bootstrap 20 --figures figures; ./parts.sh r.html; cat figures/* | cksum
| figures    28
| wrote      figures
| wrote      r.html
| 3765922155 3626 attention-action
| 2207358086 3814 attention-category
| 14820379 3020 attention-event
| 3184055393 6779 attention-future-action
| 1567473233 10992 attention-future-category
| 1017790265 8709 attention-future-event
| 3245469368 4563 case-1-predictions
| 1739474723 2799 case-1-survival
| 1555573743 12373 case-1-weights
| 2454677752 4875 case-2-predictions
| 338850623 2802 case-2-survival
| 915772884 5522 case-2-weights
| 4175634636 4438 case-3-predictions
| 2255369826 2801 case-3-survival
| 2002955712 7099 case-3-weights
| 2451591753 7921 confusion
| 1215194113 2074 influence
| 248392297 10120 kernel
| 4202165270 138741 page
| 3838794340 18605 phi
| 3192777701 3252 reliability
| 473097961 5065 reliability-time
| 4133537256 2592 scores-event-accuracy
| 3971784729 2434 scores-event-log-loss
| 4201377323 3348 spectrum
| 1477427598 3444 success-by-gap
| 1829438309 3170 success-by-length
| 1974404428 2967 training
| 2036520302 2825 training-times
| 3673602129 194627
$ lapse inspect m.st shop.csv -o r.html --split all --log run.jsonl --of-action buy --block 1 --case u3 --case u7 --bootstrap 0; ./parts.sh r.html
| figures    25
| wrote      r.html
| 905712832 2764 attention-action
| 2609109659 2983 attention-category
| 304095144 2574 attention-event
| 1972242514 4299 attention-future-action
| 1211950202 11387 attention-future-category
| 2722931515 4515 attention-future-event
| 755392065 4563 case-1-predictions
| 195791616 2794 case-1-survival
| 710675226 9511 case-1-weights
| 1491731647 4601 case-2-predictions
| 410413252 2799 case-2-survival
| 1009614272 7617 case-2-weights
| 119294761 8820 confusion
| 458897653 5085 influence
| 208076572 10120 kernel
| 3567904351 111719 page
| 3449122536 18605 phi
| 2794973876 3011 reliability
| 1602571240 5061 reliability-time
| 2098029186 2469 scores-event-accuracy
| 2569672489 2434 scores-event-log-loss
| 4199874953 3348 spectrum
| 1199295934 3447 success-by-gap
| 2636055462 3170 success-by-length
| 1241614031 3258 training
| 2036520302 2825 training-times
$ lapse inspect m.st -o r.html; ./parts.sh r.html
| figures    7; 6 not possible with this model and data, which the report explains
| wrote      r.html
| 60031010 10120 kernel
| 2743798707 27730 page
| 2669742064 18605 phi
| 3278133807 2349 scores-event-accuracy
| 1585874719 2556 scores-event-log-loss
| 2523545972 3348 spectrum
| 1613378230 2966 training
| 3710463375 2824 training-times
$ lapse train shop.csv -o b.st --event action,item --dims 6 --blocks 1 --encoding bochner --epochs 2 --threads 1 >/dev/null 2>&1
$ lapse inspect b.st shop.csv -o r.html --split valid --csv-safe; ./parts.sh r.html
| figures    13; 8 not possible with this model and data, which the report explains
| wrote      r.html
| 3706958270 4397 case-1-predictions
| 2092614062 6012 case-1-weights
| 334906080 4708 case-2-predictions
| 1000791892 8111 case-2-weights
| 660254068 4835 confusion
| 3933882755 4660 influence
| 2837361301 10374 kernel
| 3774007957 81816 page
| 901296518 130307 phi
| 3358516150 2762 reliability
| 641927240 2469 scores-event-accuracy
| 1187715687 2693 scores-event-log-loss
| 1813553502 8052 spectrum
| 2786156606 2578 training
$ lapse train shop.csv -o l.st --event action,item --model lstm --dims 6 --epochs 2 --threads 1 >/dev/null 2>&1
$ lapse inspect l.st shop.csv -o r.html --split test --case-studies 5; ./parts.sh r.html
| figures    11; 4 not possible with this model and data, which the report explains
| wrote      r.html
| 537226499 2270 case-1-predictions
| 47222164 2271 case-2-predictions
| 1701546238 2271 case-3-predictions
| 312671520 5015 confusion
| 2779723115 1955 influence
| 2632265114 18331 page
| 3266698823 2881 reliability
| 2869923439 2586 scores-event-accuracy
| 4010352274 2551 scores-event-log-loss
| 311332527 2791 success-by-gap
| 4245270055 2509 success-by-length
| 1293620585 2463 training
$ lapse train shop.csv -o k.st --event action,item --model markov >/dev/null 2>&1
$ lapse inspect k.st shop.csv -o r.html --split all; ./parts.sh r.html
| figures    9; 5 not possible with this model and data, which the report explains
| wrote      r.html
| 113448661 2173 case-1-predictions
| 1726809662 2161 case-2-predictions
| 720730494 2173 case-3-predictions
| 838510201 8019 confusion
| 581636659 2073 influence
| 1845314905 15788 page
| 1283806011 3121 reliability
| 1682890721 1319 scores-event-accuracy
| 2902132608 3405 success-by-gap
| 304779725 3173 success-by-length
$ lapse simulate --preset catalogue --items 300 --sequences 60 --seed 5 -o items.csv && lapse train items.csv -o i.st --event item --field category \
    --task recommend --when --dims 8 --blocks 1 --context 10 --epochs 2 --threads 1 >/dev/null 2>&1
| wrote      858 events to items.csv in N s
$ lapse inspect i.st items.csv -o r.html --split all --cases 100 --bootstrap 10; ./parts.sh r.html
| figures    24; 4 not possible with this model and data, which the report explains
| wrote      r.html
| 1992523767 2490 attention-category
| 2370524790 4020 attention-future-category
| 3606166176 4517 case-1-predictions
| 2431045929 2797 case-1-survival
| 3819078083 10350 case-1-weights
| 286248174 4541 case-2-predictions
| 643911650 2796 case-2-survival
| 2703905029 11655 case-2-weights
| 1623560717 4543 case-3-predictions
| 2125802423 2795 case-3-survival
| 617392201 9753 case-3-weights
| 784265377 4791 influence
| 2376098415 10043 kernel
| 1814848679 135541 page
| 2160981388 112567 phi
| 4053454115 2879 reliability
| 1375180616 5058 reliability-time
| 1772836570 2483 scores-event-hit-10
| 1396301872 2191 scores-event-mrr
| 1719567659 2337 scores-event-ndcg-10
| 4284865001 11387 spectrum
| 2443633403 2973 success-by-gap
| 1708170968 3054 success-by-length
| 2074580683 2477 training
| 646208018 2339 training-times
$ lapse simulate --preset sessions --sequences 40 --seed 5 -o s.csv && lapse train s.csv -o s.st --event item --task recommend --model sasrec --dims 8 --epochs 1 \
    --threads 1 >/dev/null 2>&1
| wrote      2,812 events to s.csv in N s
$ lapse inspect s.st s.csv -o r.html --split all --cases 100 --bootstrap 10; ./parts.sh r.html
| figures    12; 8 not possible with this model and data, which the report explains
| wrote      r.html
| 2860435476 2341 case-1-predictions
| 3448125467 4041 case-1-weights
| 981648805 2465 case-2-predictions
| 2052632643 4157 case-2-weights
| 847573850 2157 influence
| 616304834 73645 page
| 3869832400 2881 reliability
| 1426903847 2109 scores-event-hit-10
| 2380538715 2310 scores-event-mrr
| 3081320183 2334 scores-event-ndcg-10
| 3311556239 3092 success-by-gap
| 1826796259 2581 success-by-length
| 1106938587 2359 training
$ lapse simulate --preset cycle --sequences 20 --seed 5 -o c.csv && lapse train c.csv -o c.st --model rmtpp --dims 6 --epochs 2 --threads 1 >/dev/null 2>&1
| wrote      826 events to c.csv in N s
$ lapse inspect c.st c.csv -o r.html --split all --bootstrap 10; ./parts.sh r.html
| figures    15; 2 not possible with this model and data, which the report explains
| wrote      r.html
| 4172269867 2410 case-1-predictions
| 850499017 2667 case-1-survival
| 2022605618 2411 case-2-predictions
| 4060701090 2666 case-2-survival
| 1957588717 2411 case-3-predictions
| 2888365563 2667 case-3-survival
| 3686312370 6586 confusion
| 4049975991 2360 influence
| 1911237057 22245 page
| 3955708578 3363 reliability
| 563473831 5061 reliability-time
| 3730330287 2589 scores-event-accuracy
| 1138788084 2796 scores-event-log-loss
| 1187486347 3281 success-by-gap
| 3258127636 3168 success-by-length
| 908997571 2610 training
