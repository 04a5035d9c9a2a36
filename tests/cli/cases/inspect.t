$ lapse inspect --help
| usage: lapse inspect MODEL [DATA] [options]
|
| Writes a report on a model as one HTML page that needs no other file. It opens
| with whether the model beats the baselines and what the elapsed time is worth;
| then it shows what events change by the time since them, case studies with a
| slider over time, where the model fails, and the training. The time encoding and
| attention are folded. Figures have their numbers as CSV. What a model or its
| data cannot show is listed with the reason. docs/inspect.md describes the
| figures.
|
|   MODEL                     model file from `lapse train`
|   DATA                      dataset file from `lapse import`, or events in text,
|                             plain or gzip, one per row; - is standard input.
|                             Without it the report shows what the model alone can
|                             tell
|
| Options:
|   -o, --output FILE         report as one HTML page; - is standard output
|                             (default: none)
|   --csv-safe                CSV whose text cells are not run as formulas by
|                             spreadsheets: an apostrophe before =, +, -, @, tab
|                             and line breaks
|   --figures DIR             folder for each figure as SVG, created if it is
|                             missing (default: none)
|   --log FILE                log file of the training run (`lapse train --log`):
|                             curves by seconds instead of epochs (default: none)
|   --split SPLIT             split whose events are shown: test, valid, train,
|                             all (default: test; all of other data than that of
|                             the training)
|   --cases N                 number of target events, in a sample of whole
|                             sequences, if there are more (default: 2000)
|   --of-action NAME          attention to events with this action only, such as
|                             view (default: all actions)
|   --block N                 attention block whose weights are shown, from 1
|                             (default: the last)
|   --case SEQUENCE           sequence for a case study; repeatable
|   --case-studies N          number of case studies without --case: histories
|                             whose predictions change most with time (default: 3)
|   --bootstrap N             bootstrap resamples of the sequences for the 95 %
|                             intervals of the scores; 0 disables them (default:
|                             1000)
|   --threads N               CPU threads; does not change the result (default:
|                             all cores)
|
| Text input:
|   --sequence COLUMN         sequence (user, session) column: name, or number
|                             from 1 (default: that of the training data)
|   --time COLUMN             timestamp column (default: that of the training
|                             data)
|   --event COLUMN[,...]      event type (item) column; several are joined into
|                             one name (default: that of the training data)
|
| Examples:
|   lapse inspect model.safetensors events.lapse -o report.html
|   lapse inspect model.safetensors events.lapse -o report.html --log run.jsonl --case u17
|   lapse inspect model.safetensors --figures figures
|
| `lapse inspect --help all` shows every option, 18 more.
# A report needs a model, and says how many figures it has.
$ lapse import events.csv -o events.lapse >/dev/null
$ lapse train events.lapse -o m.safetensors --task classify --encoding mercer --periods 2 --harmonics 2 --dims 4 --blocks 1 \
    --epochs 2 --threads 1 --log run.jsonl >/dev/null 2>&1
$ lapse inspect m.safetensors events.lapse -o report.html
| figures    11; 8 not possible with this model and data, which the report explains
| wrote      report.html
$ lapse inspect m.safetensors events.lapse -o again.html --threads 1
| figures    11; 8 not possible with this model and data, which the report explains
| wrote      again.html
$ cmp again.html report.html
$ grep -c '<svg' report.html
| 11
$ grep -o 'class="missing">[^<]*' report.html
| class="missing">The model does not predict the time of the next event: train it with --when.
| class="missing">No group has five events; a larger --cases may help.
| class="missing">No group has five events; a larger --cases may help.
| class="missing">The model does not predict the time of the next event: train it with --when.
| class="missing">The data has no column of actions. Import it with --action COLUMN to see one curve for each action (view, search, purchase).
| class="missing">The data has no column of categories. Import it with --field COLUMN to see one curve for each category, such as the department of an item.
| class="missing">No value has enough events in the sample for a curve; a larger --cases may help.
| class="missing">No value ends at least two of the sampled histories.
# By seconds instead of epochs, where the log is given.
$ lapse inspect m.safetensors events.lapse -o timed.html --log run.jsonl --split all
| figures    19; 4 not possible with this model and data, which the report explains
| wrote      timed.html
$ grep -o 'time since the start of the run' timed.html | head -n 1
| time since the start of the run
# The model alone, and its figures as files.
$ lapse inspect m.safetensors -o alone.html --figures figures
| figures    6; 6 not possible with this model and data, which the report explains
| wrote      figures
| wrote      alone.html
$ ls figures
| kernel.svg
| phi.svg
| scores-event-accuracy.svg
| scores-event-log-loss.svg
| spectrum.svg
| training.svg
$ grep -o 'class="missing">[^<]*' alone.html | sort -u
| class="missing">The model does not predict the time of the next event: train it with --when.
| class="missing">This figure needs data: lapse inspect MODEL DATA.
# Standard output.
$ lapse inspect m.safetensors -o - | head -n 1
| <!doctype html>
# Text instead of a dataset, and data that does not suit the model: explained, not fatal.
$ lapse inspect m.safetensors events.csv -o text.html
| figures    11; 8 not possible with this model and data, which the report explains
| wrote      text.html
$ printf 'user,time,event\na,1,zebra\na,2,zebra\n' > other.csv
$ lapse inspect m.safetensors other.csv -o other.html
| figures    6; 6 not possible with this model and data, which the report explains
| wrote      other.html
$ grep -o 'class="missing">[^<]*' other.html | sort -u
| class="missing">The dataset has events 'zebra', which the model does not know; leave them out of the import.
| class="missing">The model does not predict the time of the next event: train it with --when.
$ lapse import fields.csv -o fields.lapse --event item --action action --field device --number price >/dev/null
$ lapse train fields.lapse -o fields.safetensors --dims 4 --epochs 1 --threads 1 --predict both >/dev/null 2>&1
$ lapse inspect fields.safetensors fields.lapse -o fields.html --split all --of-action view
| figures    22; 5 not possible with this model and data, which the report explains
| wrote      fields.html
$ grep -o '<h3>Attention to the last[^<]*' fields.html
| <h3>Attention to the last event in the time to come, by event, only view
| <h3>Attention to the last event in the time to come, by action, only view
| <h3>Attention to the last event in the time to come, by device, only view
$ lapse import fields.csv -o bare.lapse --event item >/dev/null
$ lapse inspect fields.safetensors bare.lapse -o bare.html
| figures    8; 6 not possible with this model and data, which the report explains
| wrote      bare.html
$ grep -o 'class="missing">[^<]*' bare.html | sort -u
| class="missing">The model does not predict the time of the next event: train it with --when.
| class="missing">The model sees the action 'action' of every event, and the dataset does not have it; import it with --action 'action'.
# A model without attention, and a baseline.
$ lapse train events.lapse -o lstm.safetensors --model lstm --dims 4 --epochs 1 --threads 1 >/dev/null 2>&1
$ lapse inspect lstm.safetensors events.lapse -o lstm.html --split all
| figures    11; 4 not possible with this model and data, which the report explains
| wrote      lstm.html
$ grep -o 'class="missing">[^<]*' lstm.html | sort -u
| class="missing">The model 'lstm' does not use lags, so it has no kernel; attention has one with an encoding of time: mercer, bochner, bochner-normal, bochner-invcdf, random.
| class="missing">The model 'lstm' has no attention whose weights add up to 1.
| class="missing">The model does not predict the time of the next event: train it with --when.
$ lapse train events.lapse -o markov.safetensors --model markov >/dev/null 2>&1
$ lapse inspect markov.safetensors events.lapse -o markov.html --split all
| figures    9; 5 not possible with this model and data, which the report explains
| wrote      markov.html
$ grep -o 'class="missing">[^<]*' markov.html | sort -u
| class="missing">The model 'markov' does not use lags, so it has no kernel; attention has one with an encoding of time: mercer, bochner, bochner-normal, bochner-invcdf, random.
| class="missing">The model 'markov' has no attention whose weights add up to 1.
| class="missing">The model does not predict the time of the next event: train it with --when.
| class="missing">The model is a baseline, fitted by counting: there are no epochs.
# Mistakes.
$ lapse inspect m.safetensors events.lapse
! lapse: set -o FILE for the report, --figures DIR for its figures, or both
! lapse: see `lapse inspect --help`
= 2
$ lapse inspect m.safetensors -o x.html --case u1
! lapse: an action, a split or a sequence needs data to choose from
= 2
$ lapse inspect m.safetensors events.lapse -o x.html --case nobody
! lapse: the data has no sequence 'nobody'
= 1
$ lapse inspect m.safetensors events.lapse -o x.html --of-action view
! lapse: the data has no column of actions to choose 'view' from; import it with --action COLUMN
= 2
$ lapse inspect m.safetensors events.lapse -o x.html --block 2
! lapse: --block takes 1 to 1 for this model, not 2
! lapse: see `lapse inspect --help`
= 2
$ lapse inspect m.safetensors events.lapse -o x.html --cases 0
! lapse: cases is 0; it must be 1 to 100000000
= 2
$ lapse inspect m.safetensors events.lapse -o x.html --case-studies 21
! lapse: there can be 0 to 20 case studies
= 2
$ lapse inspect m.safetensors events.lapse -o x.html --log events.csv
! lapse: events.csv:1: this is not the log of a training run: a line is an object with epoch and seconds, as `lapse train --log` writes it
= 1
$ lapse inspect m.safetensors events.lapse -o x.html --figures events.csv
! lapse: events.csv/scores-event-log-loss.svg: cannot write: Not a directory
= 1
$ lapse inspect m.safetensors events.lapse -o m.safetensors
! lapse: --output m.safetensors would overwrite MODEL m.safetensors
! lapse: see `lapse inspect --help`
= 2
$ lapse inspect missing.safetensors -o x.html
! lapse: missing.safetensors: cannot open: No such file or directory
= 1
$ ls x.html
! ls: cannot access 'x.html': No such file or directory
= 2
# A model that learns when has attention of its own for the time, which is not in the report.
$ lapse simulate --preset catalogue --items 5000 --sequences 300 -o p.csv >/dev/null && lapse train p.csv -o r.st --task recommend --when --epochs 1 --dims 16 --no-eval >/dev/null 2>&1
$ lapse inspect r.st p.csv -o r.html --cases 100 --bootstrap 0
| figures    22; 5 not possible with this model and data, which the report explains
| wrote      r.html
$ lapse inspect r.st p.csv -o r3.html --block 3
! lapse: --block takes 1 to 2 for this model, not 3
! lapse: see `lapse inspect --help`
= 2
