# A dataset and a model tell about themselves, whatever they are called.
$ lapse import events.csv -o events.lapse >/dev/null && lapse info events.lapse
$ lapse info events.lapse --kinds | tail -5
$ lapse info events.lapse --json
$ mv events.lapse data.bin; lapse train data.bin -o model.bin --model markov --order 1 >/dev/null 2>&1; lapse info model.bin
$ lapse info model.bin --kinds | tail -5
$ lapse info model.bin --json --kinds

# What is neither, or no longer whole, is refused.
$ lapse info nothing
$ lapse info .
$ : >empty; lapse info empty
$ lapse info events.csv
$ head -c 100 data.bin >short.bin; lapse info short.bin
$ head -c 100 model.bin >short.bin; lapse info short.bin
$ { printf '\1\0\0\0\0\0\0\0{'; } >brace.bin; lapse info brace.bin

# Where there is no room for the answer, that is a failure.
$ lapse info data.bin >/dev/full
