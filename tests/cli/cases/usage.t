# Invalid command lines: exit status 2, an error, and how to get help.
$ lapse
! usage: lapse VERB [arguments] [options]
!
! Trains models on timestamped events and predicts: given this history, what happens at time t?
!
!   demo        simulate a shop, train models, and show what the elapsed time adds
!   simulate    simulate events from a known process, as CSV
!   import      read events from CSV or JSON into a dataset file
!   info        describe events, a model or item vectors
!   check       check a dataset for data-quality problems and leakage
!   pretrain    pretrain item vectors that initialize a model
!   train       train a model on events and save the best one
!   compare     train models and compare them in one table
!   tune        search training options within a time budget
!   eval        evaluate a model on events
!   predict     predict the next event at a given time, or when it comes, for each history in a file
!   forecast    forecast events by type until a horizon, for each history in a file
!   serve       answer predictions over HTTP
!   store       back up the histories of lapse serve
!   inspect     report on a model as an HTML page with figures
!   kernel      show the learned time kernel of a model
!   bound       compute how many sampled frequencies a kernel needs
!   bench       benchmark training and scoring on this machine
!   help        explain a verb, or print the man page
!
! `lapse VERB --help` shows the arguments and common options of a verb, `lapse VERB --help all` every option.
! `lapse --version` prints the version. `lapse demo` is a first example: it needs no data.
= 2
$ lapse --version
| lapse 0.1.0
$ lapse --help
| usage: lapse VERB [arguments] [options]
|
| Trains models on timestamped events and predicts: given this history, what happens at time t?
|
|   demo        simulate a shop, train models, and show what the elapsed time adds
|   simulate    simulate events from a known process, as CSV
|   import      read events from CSV or JSON into a dataset file
|   info        describe events, a model or item vectors
|   check       check a dataset for data-quality problems and leakage
|   pretrain    pretrain item vectors that initialize a model
|   train       train a model on events and save the best one
|   compare     train models and compare them in one table
|   tune        search training options within a time budget
|   eval        evaluate a model on events
|   predict     predict the next event at a given time, or when it comes, for each history in a file
|   forecast    forecast events by type until a horizon, for each history in a file
|   serve       answer predictions over HTTP
|   store       back up the histories of lapse serve
|   inspect     report on a model as an HTML page with figures
|   kernel      show the learned time kernel of a model
|   bound       compute how many sampled frequencies a kernel needs
|   bench       benchmark training and scoring on this machine
|   help        explain a verb, or print the man page
|
| `lapse VERB --help` shows the arguments and common options of a verb, `lapse VERB --help all` every option.
| `lapse --version` prints the version. `lapse demo` is a first example: it needs no data.
$ lapse -h | head -1
| usage: lapse VERB [arguments] [options]
$ lapse help | head -1
| usage: lapse VERB [arguments] [options]
$ lapse trian
! lapse: unknown verb 'trian'; did you mean train?
! lapse: see `lapse --help`
= 2
$ lapse xyzzy
! lapse: unknown verb 'xyzzy'
! lapse: see `lapse --help`
= 2
$ lapse --frobnicate
! lapse: the first argument must be a verb, not '--frobnicate'
! lapse: see `lapse --help`
= 2
$ lapse help trian
! lapse: unknown verb 'trian'; did you mean train?
! lapse: see `lapse --help`
= 2
$ lapse train
! lapse: train needs DATA: dataset file from `lapse import`, or events in text, plain or gzip, one per row; - is standard input
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse
! lapse: train needs --output MODEL: model file to write
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o
! lapse: --output needs a value: --output MODEL
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o --json
! lapse: --output needs a value: --output MODEL
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse --output=
! lapse: --output takes a MODEL, not ''
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors more
! lapse: train: unexpected argument 'more'
! lapse: see `lapse train --help`
= 2
$ lapse train -o m.safetensors -- --odd-name more
! lapse: train: unexpected argument 'more'
! lapse: see `lapse train --help`
= 2

# An error about an unknown option names the nearest one; abbreviations are not accepted.
$ lapse train events.lapse -o m.safetensors --epoch 3
! lapse: train has no option --epoch; did you mean --epochs?
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --learn 0.1
! lapse: train has no option --learn; did you mean --learning-rate?
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --hedas=2
! lapse: train has no option --hedas; did you mean --heads?
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --xyzzy
! lapse: train has no option --xyzzy
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors -z
! lapse: train has no option -z
! lapse: see `lapse train --help`
= 2
$ lapse eval m.safetensors events.lapse --output x
! lapse: eval has no option --output
! lapse: see `lapse eval --help`
= 2

# Invalid values of every option type.
$ lapse train events.lapse -o m.safetensors --epochs many
! lapse: --epochs takes a whole number from 1 to 1e+06, not 'many'
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --epochs -1
! lapse: --epochs takes a whole number from 1 to 1e+06, not '-1'
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --epochs 1.5
! lapse: --epochs takes a whole number from 1 to 1e+06, not '1.5'
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --epochs 99999999999
! lapse: --epochs takes a whole number from 1 to 1e+06, not '99999999999'
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --seed 18446744073709551616
! lapse: --seed takes a whole number from 0 to 18446744073709551615, not '18446744073709551616'
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --learning-rate fast
! lapse: --learning-rate takes a number from 1e-12 to 10, not 'fast'
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --learning-rate nan
! lapse: --learning-rate takes a number from 1e-12 to 10, not 'nan'
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --learning-rate 0x1
! lapse: --learning-rate takes a number from 1e-12 to 10, not '0x1'
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --period-min 3
! lapse: events.lapse: cannot open: No such file or directory
= 1
$ lapse train events.lapse -o m.safetensors --encoding mercur
! lapse: --encoding takes one of mercer, bochner, bochner-normal, bochner-invcdf, random, position, sinusoid, none, not 'mercur'
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --target-time maybe
! lapse: --target-time takes one of known, unknown, not 'maybe'
! lapse: see `lapse train --help`
= 2
$ lapse train events.lapse -o m.safetensors --resume=yes
! lapse: events.lapse: cannot open: No such file or directory
= 1
$ lapse predict m.safetensors history.csv
! lapse: --at is missing, or --when to predict the time of the next event
! lapse: see `lapse predict --help`
= 2
$ lapse predict m.safetensors history.csv --at 3d
! lapse: --at 3d: this is a duration; +3d is that long after the last event of each sequence
! lapse: see `lapse predict --help`
= 2
$ lapse predict m.safetensors history.csv --at +3
! lapse: --at +3: '3' is not a length of time: give a number and its unit, such as 250ms, 90s, 15m, 3h, 2d, 1w or 2y
! lapse: see `lapse predict --help`
= 2
$ lapse predict m.safetensors history.csv --at +3d --json --csv
! lapse: --json and --csv are mutually exclusive
! lapse: see `lapse predict --help`
= 2

# An output file that is also the input.
$ lapse train events.lapse -o events.lapse
! lapse: --output events.lapse would overwrite DATA events.lapse
! lapse: see `lapse train --help`
= 2
$ lapse import events.csv -o events.csv
! lapse: --output events.csv would overwrite INPUT events.csv
! lapse: see `lapse import --help`
= 2
$ lapse simulate -o same.csv --law same.csv
! lapse: --output same.csv and --law same.csv are the same file
! lapse: see `lapse simulate --help`
= 2

# Options in any position and in both forms; the last occurrence wins.
$ lapse import --min-events=1 events.csv --sequence nobody --sequence user -o events.lapse >/dev/null && ls *.lapse
| events.lapse
$ cd . && lapse info -- events.lapse | head -1
| file             events.lapse (dataset)
