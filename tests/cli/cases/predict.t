# A counted model, so that the answers are exact everywhere.
$ lapse import events.csv -o events.lapse >/dev/null
$ lapse train events.lapse -o m.safetensors --model markov --order 1 --seed 3 >/dev/null 2>&1

# Times: after the last event, ISO 8601, unix seconds; several give a column each.
$ lapse predict m.safetensors history.csv --at +3d --top 2
$ lapse predict m.safetensors history.csv --at +1h --at 2026-03-01T12:00:00+01:00 --at 1772362800.5
$ lapse predict m.safetensors - --at +1h --top 1 <history.csv
$ lapse predict m.safetensors history.csv --at +1h --top 1 --csv
$ lapse predict m.safetensors history.csv --at +1h --top 0 --csv | wc -l
$ lapse predict m.safetensors history.csv --at +1h --at 2026-03-01 --top 2 --json
$ lapse predict m.safetensors history.csv --at +0s --top 99 | wc -l

# A time before the last event of some sequence is refused, and nothing is half printed.
$ lapse predict m.safetensors history.csv --at 2026-02-02T00:00:00Z

# Events that the model does not know.
$ lapse predict m.safetensors strange.csv --at +1h
$ lapse predict m.safetensors strange.csv --at +1h --unknown skip --top 1
$ lapse predict m.safetensors strange.csv --at +1h --unknown skip --top 1 --json

# Columns: those the model was trained from where the file has them, else found by name, else as told.
$ sed '1s/user/customer/; 1s/event/item/' history.csv >other.csv; lapse predict m.safetensors other.csv --at +1h --top 1
$ sed '1s/user/customer/; s/$/,x/' history.csv | sed '1s/x$/item/' >more.csv; lapse predict m.safetensors more.csv --at +1h --top 1
$ lapse predict m.safetensors renamed.csv --at +1h --top 1
$ lapse predict m.safetensors renamed.csv --at +1h --top 1 --sequence customer --time when --event what
$ tail -n +2 history.csv | lapse predict m.safetensors - --at +1h --top 1 --no-header --sequence 1 --time 2 --event 3

# Bad rows.
$ lapse predict m.safetensors bad.csv --at +1h
$ lapse predict m.safetensors bad.csv --at +1h --top 1 --bad-rows skip
$ lapse predict nothing.safetensors history.csv --at +1h
$ lapse predict history.csv history.csv --at +1h
$ lapse predict m.safetensors nothing.csv --at +1h
$ lapse predict m.safetensors events.lapse --at +1h
