# Every figure of reports on small models, as a checksum. To see what has changed, make a report before and after, and compare the
# folders parts of parts.sh.
$ lapse simulate -o shop.csv --sequences 30 --days 40 --seed 3 && lapse train shop.csv -o m.st --event action,item --action action --field category \
    --when --dims 8 --blocks 2 --heads 2 --context 12 --periods 3 --harmonics 2 --epochs 3 --threads 1 --log log >/dev/null 2>&1; sed -E 's/("seconds": ?)[0-9.e-]+/\11.5/g' log | awk '{ sub("1\\.5", NR / 4) } 1' >run.jsonl
| wrote      282 events to shop.csv in N s
$ lapse inspect m.st shop.csv -o r.html --split all --cases 200 --bootstrap 20 --figures figures; ./parts.sh r.html; cat figures/* | cksum
| figures    28
| wrote      figures
| wrote      r.html
| 1433152526 3624 attention-action
| 2851834867 3813 attention-category
| 2297520604 3017 attention-event
| 166997731 6768 attention-future-action
| 3311230363 10994 attention-future-category
| 3030475709 8721 attention-future-event
| 501680676 4474 case-1-predictions
| 3079824343 2803 case-1-survival
| 293474894 10807 case-1-weights
| 2617553250 4768 case-2-predictions
| 725243628 2803 case-2-survival
| 3625365459 14318 case-2-weights
| 4183494606 4579 case-3-predictions
| 1884015628 2802 case-3-survival
| 3975646675 12698 case-3-weights
| 2408987556 8228 confusion
| 2629445601 4970 influence
| 2502230111 10110 kernel
| 2884307314 177562 page
| 2753737210 18491 phi
| 1622479866 3257 reliability
| 581591017 5065 reliability-time
| 805129482 2592 scores-event-accuracy
| 72502724 2434 scores-event-log-loss
| 1264649363 3348 spectrum
| 3946511173 3447 success-by-gap
| 1108375903 3176 success-by-length
| 1404102345 2941 training
| 680998243 2823 training-times
| 900232964 210410
$ lapse inspect m.st shop.csv -o r.html --split all --log run.jsonl --of-action buy --block 1 --case u3 --case u7 --bootstrap 0; ./parts.sh r.html
| figures    25
| wrote      r.html
| 1559223646 2882 attention-action
| 1250218780 2981 attention-category
| 3710449455 2574 attention-event
| 1918533505 4302 attention-future-action
| 1316089584 11037 attention-future-category
| 4137688080 4042 attention-future-event
| 1250972514 4563 case-1-predictions
| 1627551139 2794 case-1-survival
| 3955840149 8755 case-1-weights
| 3311841051 4444 case-2-predictions
| 139750975 2800 case-2-survival
| 299465436 8130 case-2-weights
| 2659109051 8789 confusion
| 2564218987 4970 influence
| 4015770796 10110 kernel
| 1515018685 111805 page
| 576446219 18491 phi
| 164966479 3493 reliability
| 372596948 5063 reliability-time
| 3122207768 2469 scores-event-accuracy
| 3104896034 2434 scores-event-log-loss
| 1264577329 3348 spectrum
| 308637193 3447 success-by-gap
| 3636455597 3176 success-by-length
| 2022866103 3232 training
| 680998243 2823 training-times
$ lapse inspect m.st -o r.html; ./parts.sh r.html
| figures    7; 6 not possible with this model and data, which the report explains
| wrote      r.html
| 4137450289 10110 kernel
| 1797893508 27735 page
| 711466846 18491 phi
| 68593196 2594 scores-event-accuracy
| 4238537018 2556 scores-event-log-loss
| 660646860 3348 spectrum
| 4174468089 2940 training
| 2193975004 2822 training-times
$ lapse train shop.csv -o b.st --event action,item --dims 6 --blocks 1 --encoding bochner --epochs 2 --threads 1 >/dev/null 2>&1
$ lapse inspect b.st shop.csv -o r.html --split valid --csv-safe; ./parts.sh r.html
| figures    13; 8 not possible with this model and data, which the report explains
| wrote      r.html
| 3426487389 4590 case-1-predictions
| 1048021483 7734 case-1-weights
| 2958785975 4856 case-2-predictions
| 490114442 6040 case-2-weights
| 660254068 4835 confusion
| 3207342856 4656 influence
| 4089863597 9897 kernel
| 3739165496 82068 page
| 2633277997 130335 phi
| 859446505 2646 reliability
| 641927240 2469 scores-event-accuracy
| 828560234 2693 scores-event-log-loss
| 673637475 8052 spectrum
| 786213851 2578 training
$ lapse train shop.csv -o l.st --event action,item --model lstm --dims 6 --epochs 2 --threads 1 >/dev/null 2>&1
$ lapse inspect l.st shop.csv -o r.html --split test --case-studies 5; ./parts.sh r.html
| figures    11; 4 not possible with this model and data, which the report explains
| wrote      r.html
| 1015644349 2148 case-1-predictions
| 302618550 2149 case-2-predictions
| 2179153345 2146 case-3-predictions
| 2326488527 5363 confusion
| 1616624067 1950 influence
| 822075236 18706 page
| 2544985476 2643 reliability
| 1004275191 2586 scores-event-accuracy
| 92565861 2551 scores-event-log-loss
| 2342446614 2857 success-by-gap
| 518892045 2578 success-by-length
| 2381278587 2604 training
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
| 1411525258 2488 attention-category
| 2903806566 4377 attention-future-category
| 3945235145 4687 case-1-predictions
| 3895145303 2802 case-1-survival
| 1268967024 7764 case-1-weights
| 2547641654 4716 case-2-predictions
| 879755663 2801 case-2-survival
| 3678452438 11047 case-2-weights
| 953172617 4268 case-3-predictions
| 1465102742 2799 case-3-survival
| 490548060 8435 case-3-weights
| 3422911320 4873 influence
| 1008233318 10041 kernel
| 3497477567 135532 page
| 2683340418 110101 phi
| 484358522 2879 reliability
| 1510112158 5059 reliability-time
| 823536607 2483 scores-event-hit-10
| 205359720 2191 scores-event-mrr
| 701234739 2337 scores-event-ndcg-10
| 1311652062 11387 spectrum
| 1726546257 2979 success-by-gap
| 302089404 3057 success-by-length
| 1496519008 2477 training
| 2736591349 2816 training-times
$ lapse simulate --preset sessions --sequences 40 --seed 5 -o s.csv && lapse train s.csv -o s.st --event item --task recommend --model sasrec --dims 8 --epochs 1 \
    --threads 1 >/dev/null 2>&1
| wrote      2,812 events to s.csv in N s
$ lapse inspect s.st s.csv -o r.html --split all --cases 100 --bootstrap 10; ./parts.sh r.html
| figures    12; 8 not possible with this model and data, which the report explains
| wrote      r.html
| 1348201592 2341 case-1-predictions
| 3778633493 3984 case-1-weights
| 1583682242 2467 case-2-predictions
| 3510962879 4157 case-2-weights
| 602274089 2282 influence
| 1402427840 73897 page
| 2264736080 2880 reliability
| 3799576337 2109 scores-event-hit-10
| 119624847 2310 scores-event-mrr
| 3374034809 2334 scores-event-ndcg-10
| 3837619547 3092 success-by-gap
| 389815574 2581 success-by-length
| 2874594702 2359 training
$ lapse simulate --preset cycle --sequences 20 --seed 5 -o c.csv && lapse train c.csv -o c.st --model rmtpp --dims 6 --epochs 2 --threads 1 >/dev/null 2>&1
| wrote      826 events to c.csv in N s
$ lapse inspect c.st c.csv -o r.html --split all --bootstrap 10; ./parts.sh r.html
| figures    15; 2 not possible with this model and data, which the report explains
| wrote      r.html
| 910350408 2410 case-1-predictions
| 1734556561 2667 case-1-survival
| 3579071372 2411 case-2-predictions
| 1683344714 2661 case-2-survival
| 4003239607 2411 case-3-predictions
| 1354807396 2667 case-3-survival
| 2428961784 6585 confusion
| 2202599850 2360 influence
| 2216128071 22296 page
| 2409465096 2644 reliability
| 2749903663 5061 reliability-time
| 601645856 2589 scores-event-accuracy
| 1329812831 2796 scores-event-log-loss
| 2489914490 3326 success-by-gap
| 3045785868 3168 success-by-length
| 3938356688 2610 training
