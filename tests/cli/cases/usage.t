# How the tool answers when it is called wrongly: 2, a sentence, and where to read on.
$ lapse
$ lapse --version
$ lapse --help
$ lapse -h | head -1
$ lapse help | head -1
$ lapse trian
$ lapse xyzzy
$ lapse --frobnicate
$ lapse help trian
$ lapse train
$ lapse train events.lapse
$ lapse train events.lapse -o
$ lapse train events.lapse -o --json
$ lapse train events.lapse --output=
$ lapse train events.lapse -o m.safetensors more
$ lapse train -o m.safetensors -- --odd-name more

# Unknown options are met with the nearest known one; abbreviations are not accepted.
$ lapse train events.lapse -o m.safetensors --epoch 3
$ lapse train events.lapse -o m.safetensors --learn 0.1
$ lapse train events.lapse -o m.safetensors --hedas=2
$ lapse train events.lapse -o m.safetensors --xyzzy
$ lapse train events.lapse -o m.safetensors -z
$ lapse eval m.safetensors events.lapse --output x

# Values of every kind that are not one.
$ lapse train events.lapse -o m.safetensors --epochs many
$ lapse train events.lapse -o m.safetensors --epochs -1
$ lapse train events.lapse -o m.safetensors --epochs 1.5
$ lapse train events.lapse -o m.safetensors --epochs 99999999999
$ lapse train events.lapse -o m.safetensors --seed 18446744073709551616
$ lapse train events.lapse -o m.safetensors --learning-rate fast
$ lapse train events.lapse -o m.safetensors --learning-rate nan
$ lapse train events.lapse -o m.safetensors --learning-rate 0x1
$ lapse train events.lapse -o m.safetensors --period-min 3
$ lapse train events.lapse -o m.safetensors --encoding mercur
$ lapse train events.lapse -o m.safetensors --target-time maybe
$ lapse train events.lapse -o m.safetensors --resume=yes
$ lapse predict m.safetensors history.csv
$ lapse predict m.safetensors history.csv --at 3d
$ lapse predict m.safetensors history.csv --at +3
$ lapse predict m.safetensors history.csv --at +3d --json --csv

# What would destroy its own input.
$ lapse train events.lapse -o events.lapse
$ lapse import events.csv -o events.csv
$ lapse simulate -o same.csv --law same.csv

# Options may stand anywhere, in both forms, and the last of two counts.
$ lapse import --min-events=1 events.csv --sequence nobody --sequence user -o events.lapse >/dev/null && ls *.lapse
$ cd . && lapse info -- events.lapse | head -1
