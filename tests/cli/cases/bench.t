# Times differ from run to run, so numbers are written as N, and ops in the order of their names.
$ lapse bench --preset so --rounds 1 --batch 16 --threads 1 | head -10 | sed -E 's/[0-9][0-9.,e-]*k?/N/g; s/x86-N-vN|portable/LEVEL/'
$ lapse bench --preset so --rounds 1 --batch 16 --threads 1 | sed -n '13,$p' | cut -d ' ' -f 1 | grep -v waiting | sort
$ lapse bench --preset so --what predict --rounds 1 --threads 1 | head -10 | sed -E 's/[0-9][0-9.,e-]*[kM]?/N/g; s/x86-N-vN|portable/LEVEL/'
$ lapse bench --preset so --rounds 1 --batch 16 --threads 1 --json | sed '/"ops"/,$d; s/"[0-9.x-]*",/"N",/; s/: [0-9.e+-]*,/: N,/; s/"x86-64-v."\|"portable"/"LEVEL"/'
$ lapse bench --preset walmart
$ lapse bench --what sleep
$ lapse bench --rounds 0
$ lapse bench so
