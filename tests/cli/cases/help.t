# The help of every verb, with the defaults in use.
$ lapse demo --help
| usage: lapse demo [options]
|
| Simulates a shop whose law is known, trains the baselines (majority, Markov chains)
| and attention with three ways to see time at equal size, and shows in one table
| what each reached of what is possible. Then tells what happens next to one
| shopper. Takes under a minute.
|
| Options:
|   --seed N                  another seed is another shop and another training
|                             (default: 1)
|   --threads N               threads to use; never changes the result (default:
|                             all cores)
|   --keep FOLDER             keep events, dataset and models in this folder
|                             (default: they are removed at the end)
|   --json                    print the table as one JSON object
|
| Examples:
|   lapse demo
|   lapse demo --keep shop
$ lapse simulate --help
| usage: lapse simulate -o FILE [options]
|
| Draws histories of events from a process whose law is known, so that the best
| possible prediction is known too. The shop has goods bought again after their
| own period, views that fade within the hour, accessories that follow a purchase
| after days, and weekly habits. The catalogue has as many items as are asked for,
| in categories, series and brands, some of them new; its law is not written out.
|
| Options:
|   -o, --output FILE         the CSV file to write; - is standard output
|   --preset NAME             what is simulated (default: shop)
|   --law FILE                also write the law's own probability of every event type
|                             at every event (default: not written)
|   --catalogue FILE          also write one row for each item of the preset
|                             catalogue: item,name,brand,category (default: not
|                             written)
|   --items N                 items of the preset catalogue (default: the preset's
|                             own)
|   --sequences N             histories to draw (default: the preset's own)
|   --days DAYS               length of each history; 0 is the preset's own
|                             (default: 0)
|   --seed N                  the same seed draws the same events (default: 1)
|
| Examples:
|   lapse simulate --preset shop -o shop.csv --law law.csv
|   lapse simulate --preset catalogue --items 1700000 --sequences 72000 -o c.csv --catalogue c-items.csv
$ lapse import --help
| usage: lapse import INPUT -o DATASET [options]
|
| Reads events (whose, when, what), sorts them by sequence and time, cuts
| sequences into sessions and drops duplicates where asked to, drops what is too
| rare or too short, and writes a dataset file. An existing file is replaced only
| by a whole new one.
|
|   INPUT                     a CSV or TSV file, plain or gzip, with one event a
|                             row; - is standard input
|
| Options:
|   -o, --output DATASET      the dataset file to write
|   --sequence COLUMN         column that says whose event it is: a name, or a
|                             number from 1 (default: found by its name)
|   --time COLUMN             column with the time (default: found by its name)
|   --event COLUMN[,...]      column with the event's name, or several to be
|                             joined (default: found by its name)
|   --time-unit UNIT          how times are written: auto, s, ms, iso (default:
|                             auto)
|   --delimiter CHARACTER     what stands between fields; tab for a tab (default:
|                             told from the first line)
|   --no-header               the first line is data already, and columns are
|                             numbers
|   --bad-rows WHAT           what to do at a row that cannot be read: stop, skip
|                             (default: stop)
|   --action COLUMN           column with what was done (view, search, purchase),
|                             a field of each event that can also be predicted
|                             (default: none)
|   --field COLUMN            a further column of categories that models see of
|                             past events; may be given several times
|   --number COLUMN           a further column of numbers that models see of past
|                             events, empty where missing; may be given several
|                             times
|   --split-column COLUMN     column that says train, valid or test (default:
|                             none)
|   --session-gap TIME        cut a sequence wherever two neighbouring events are
|                             further apart, such as 30m; the parts are named
|                             SEQUENCE/1, SEQUENCE/2 and so on (default: sequences
|                             are not cut)
|   --deduplicate WHICH       drop rows of the same sequence, time and event as
|                             another (exact), or of the same event as the row
|                             before in their sequence (consecutive): none, exact,
|                             consecutive (default: none)
|   --min-events N            drop sequences with fewer events (default: 1)
|   --min-count N             drop events that occur fewer times in all; done
|                             before --min-events (default: 1)
|   --min-rounds HOW          the two minimums one after the other, or in turn
|                             until nothing changes: once, iterated (default:
|                             once)
|   --threads N               threads to use (default: all cores)
|   --json                    report as one JSON object
|
| Examples:
|   lapse import events.csv -o events.lapse --sequence user --time time --event action,item
|   lapse import shop.csv -o shop.lapse --event item --action action --field device --number price
|   zcat big.tsv.gz | lapse import - -o big.lapse --min-events 5 --bad-rows skip
|   lapse import clicks.csv -o clicks.lapse --session-gap 30m --deduplicate consecutive --min-events 2
|   lapse import films.csv -o films.lapse --min-count 5 --min-events 5 --min-rounds iterated
$ lapse info --help
| usage: lapse info FILE [options]
|
| Checks a dataset, a model or item vectors whole and tells what it says about
| itself: where it came from, sizes, settings, split and scores.
|
|   FILE                      a dataset, a model or item vectors
|
| Options:
|   --event-types                   list the event types, or items, too
|   --json                    print one JSON object
|
| Examples:
|   lapse info events.lapse --event-types
|   lapse info model.safetensors --json
$ lapse train --help
| usage: lapse train DATA -o MODEL [options]
|
| Learns from the training split, keeps the parameters that were best on the
| validation split, and scores them on the test split. What is not set is chosen
| from the data. Ctrl-C stops at the end of the step and saves the best model so
| far; --resume goes on from there.
|
|   DATA                      a dataset made by `lapse import`
|
| Options:
|   -o, --output MODEL        the model file to write
|   --no-eval                 do not score the model on the test split afterwards
|   --json                    print the settings and scores as one JSON object
|
| Model:
|   --task TASK               what is learned: classify, recommend (default:
|                             classify)
|   --model NAME              what learns it: attention, markov, item-markov,
|                             recency, popularity, majority (default: attention)
|   --encoding NAME           how attention sees time: mercer, bochner,
|                             bochner-normal, bochner-invcdf, random, position,
|                             sinusoid, none (default: mercer)
|   --projection NAME         what makes query, key and value of event and time;
|                             mlp: without exact lags: linear, mlp-query, mlp
|                             (default: linear)
|   --combine HOW             how time joins the event: concatenate, add (default:
|                             concatenate)
|   --target-time RULE        whether the time of the predicted event is given:
|                             known, unknown (default: known)
|   --dims N                  width of the event embedding and of each block
|                             (default: chosen from the data)
|   --blocks N                attention blocks, 1 to 3 (default: chosen from the
|                             data)
|   --heads N                 attention heads, 1 to 4; must divide the dims
|                             (default: chosen from the data)
|   --context N               events seen before the predicted one (default:
|                             chosen from the data)
|   --periods N               base periods of the time encoding: its frequencies,
|                             where it has no harmonics (default: chosen from the
|                             data)
|   --harmonics N             harmonics of each period (mercer) (default: chosen
|                             from the data)
|   --period-min TIME         shortest period at the start, such as 1m (default:
|                             chosen from the data)
|   --period-max TIME         longest period at the start, such as 2y (default:
|                             chosen from the data)
|   --period-init RULE        how the periods start between the two: geometric,
|                             paper, random, linear (default: geometric)
|   --periods-fixed           leave the periods where they start, instead of
|                             learning them
|   --inverse-cdf MAP         how noise becomes frequencies: mlp, mlp-residual,
|                             maf, iaf, nvp (default: mlp-residual)
|   --hidden N                width of the two hidden layers of that map (default:
|                             256)
|   --draws N                 draws of frequencies that the model keeps and
|                             averages its answers over (default: 1)
|   --dropout SHARE           share of the activations left out in training, 0 to
|                             0.9 (default: chosen from the data)
|   --predict WHAT            what is predicted: the event, the action that came
|                             with --action at the import, or both: event, action,
|                             both (default: event)
|   --field-dims N            width of the embedding of each field of categories
|                             (default: by the number of its categories)
|   --item-output WHICH       the vectors that items are scored by: those they are
|                             read with, or others: shared, separate (default:
|                             shared)
|   --order N                 events that a Markov chain looks back, 1 to 3
|                             (default: chosen from the data)
|
| Training:
|   --loss NAME               what is made small: the cross-entropy over the whole
|                             catalogue, or a loss of the item that came and of
|                             negatives, which did not: softmax, bce,
|                             sampled-softmax (default: by the size of the
|                             catalogue)
|   --negatives HOW           how negatives are drawn: evenly, by how often they
|                             occur, or none but the items of the batch: uniform,
|                             popularity, in-batch (default: uniform)
|   --negative-count N        negatives drawn for each event (bce) or for a step
|                             (sampled-softmax) (default: 1 for bce, 1000 for
|                             sampled-softmax)
|   --popularity-power X      negatives by popularity are drawn by this power of
|                             their occurrences (default: 0.75)
|   --negatives-unseen        never draw an item that the sequence itself has
|   --item-vectors FILE       vectors of `lapse pretrain` that the items start
|                             from; items that only it knows can be recommended
|                             too (default: none)
|   --windows WHICH           what training sees of a history longer than the
|                             context: all of it, window by window, or its last
|                             events: all, last (default: all)
|   --learning-rate X         Adam's step size (default: 0.001)
|   --schedule HOW            how the learning rate goes: it stays, or falls to 0
|                             over all epochs: constant, cosine (default:
|                             constant)
|   --beta1 X                 Adam's memory of the gradient (default: 0.9)
|   --beta2 X                 Adam's memory of its square (default: 0.98)
|   --l2 X                    pull of every parameter towards zero: so many times
|                             itself is added to its gradient (default: 0)
|   --clip X                  largest norm of the gradient; 0 does not clip
|                             (default: 5)
|   --batch N                 windows of events in a step (default: chosen from
|                             the data)
|   --epochs N                passes over the training split, at most (default:
|                             100)
|   --patience N              epochs without a better score before it stops
|                             (default: 10)
|
| Run:
|   --split-by RULE           how events come to train, valid and test: as a
|                             column of the source says, sequences by chance, the
|                             last events of each sequence, or sequences by their
|                             start: column, sequence, leave-one-out, time
|                             (default: column where the dataset has one,
|                             otherwise by the task)
|   --seed N                  sets the split by sequence, the starting parameters,
|                             dropout and order (default: 1)
|   --shards N                parts a batch is cut into; unlike threads, changes
|                             the last bits of the result (default: 16)
|   --threads N               threads to use; never changes the result (default:
|                             all cores)
|   --device DEVICE           what computes: the CPU, an NVIDIA GPU, or a GPU
|                             where there is one: cpu, cuda, auto (default: cpu)
|   --precision TYPE          how a GPU rounds the factors of products: fp32,
|                             tf32, bf16 (default: fp32)
|   --checkpoint FILE         where the run can be resumed from; removed when it
|                             is finished; none for none (default:
|                             MODEL.checkpoint)
|   --checkpoint-every TIME   at least so long between two checkpoints, such as
|                             30s (default: 30 seconds)
|   --resume                  go on from the checkpoint, if there is one
|
| Examples:
|   lapse train events.lapse -o model.safetensors --task classify
|   lapse train events.lapse -o markov.safetensors --model markov --order 2
|   lapse train events.lapse -o model.safetensors --resume
$ lapse eval -h
| usage: lapse eval MODEL DATA [options]
|
| Scores a model on every event but each sequence's first. The model remembers how
| its training data was split, so the test split holds nothing it has learned
| from. A model of the task 'recommend' is scored by the rank of the right item:
| in the whole catalogue, with and without items seen before, and among items
| drawn uniformly and by popularity.
|
|   MODEL                     a model made by `lapse train`
|   DATA                      the dataset to score it on
|
| Options:
|   --split SPLIT             which events are scored: test, valid, train, all
|                             (default: test)
|   --classes                 add a table with precision, recall and F1 of every
|                             event type
|   --cutoffs K,K             recommend: the places of Hit@K and NDCG@K (default:
|                             5,10)
|   --negatives N             recommend: items drawn to rank against, uniformly
|                             and by popularity; 0 ranks in the whole catalogue
|                             only (default: 100)
|   --negative-seed N         recommend: sets which items and events are drawn
|                             (default: 1)
|   --cases N                 recommend: ranks so many events at most, drawn by
|                             the seed (default: all)
|   --slices                  recommend: add tables by history length, popularity
|                             of the item and lag
|   --bootstrap N             resamples of the sequences for the intervals; 0
|                             leaves them out (default: 1000)
|   --device DEVICE           what computes: the CPU, an NVIDIA GPU, or a GPU
|                             where there is one: cpu, cuda, auto (default: cpu)
|   --threads N               threads to use; never changes the result (default:
|                             all cores)
|   --json                    print one JSON object
|
| Examples:
|   lapse eval model.safetensors events.lapse --split test --classes
|   lapse eval recommender.safetensors events.lapse --cutoffs 1,5,10,20 --slices
$ lapse predict --help
| usage: lapse predict MODEL HISTORY --at TIME [options]
|
| Reads histories and answers for each: if the next event happens at this time,
| what is it? Prints the likeliest event types with their probabilities; a model of the
| task recommend, items with their scores.
|
|   MODEL                     a model made by `lapse train`
|   HISTORY                   a CSV or TSV file, plain or gzip, with one event a
|                             row; - is standard input
|
| Options:
|   --at TIME                 the query time: unix seconds, ISO 8601, or +3d
|                             for 3 days after the last event of each sequence;
|                             several give a column each
|   --top K                   how many event types to show, the likeliest first; 0 shows
|                             all (default: 5)
|   --unseen                  leave out what the history has had already
|   --unknown WHAT            what to do with events that the model does not know:
|                             error, skip (default: error)
|   --csv                     print CSV, one answer a row
|   --json                    print one JSON object
|   --sequence COLUMN         column that says whose event it is: a name, or a
|                             number from 1 (default: the one the model was
|                             trained from)
|   --time COLUMN             column with the time (default: the one the model was
|                             trained from)
|   --event COLUMN[,...]      column with the event's name, or several to be
|                             joined (default: the one the model was trained from)
|   --time-unit UNIT          how times are written: auto, s, ms, iso (default:
|                             auto)
|   --delimiter CHARACTER     what stands between fields; tab for a tab (default:
|                             told from the first line)
|   --no-header               the first line is data already, and columns are
|                             numbers
|   --bad-rows WHAT           what to do at a row that cannot be read: stop, skip
|                             (default: stop)
|   --action COLUMN           column with the action, for a model that sees it;
|                             its other fields keep their names (default: the one
|                             the model was trained from)
|   --threads N               threads to read and answer with (default: all cores)
|
| Examples:
|   lapse predict model.safetensors history.csv --at '2026-11-15T12:00:00Z' --top 5
|   lapse predict model.safetensors history.csv --at +1h --at +3d --at +2w --json
|   lapse predict shop.safetensors customers.csv --at +1d --top 10 --unseen --csv
$ lapse help --help
| usage: lapse help [VERB] [options]
|
| Explains a verb: what it takes, what it does, and the defaults in use. `lapse
| help VERB` is `lapse VERB --help`.
|
|   VERB                      the verb to explain; all of them where none is named
|
| Options:
|   --man                     print the man page, in troff
|
| Examples:
|   lapse help train
|   lapse help --man | man -l -
$ lapse train --epochs 3 --help | head -1
| usage: lapse train DATA -o MODEL [options]
$ lapse help predict | head -1
| usage: lapse predict MODEL HISTORY --at TIME [options]

# The man page is troff that groff has nothing to say against, where there is groff.
$ lapse help --man | head -5
| .TH LAPSE 1 "" "Lapse 0.1.0" "User Commands"
| .SH NAME
| lapse \- learn from timestamped events, and ask what happens at a time
| .SH SYNOPSIS
| .B lapse demo
$ lapse help --man | grep -c '^\.SS'
| 13
$ ! command -v groff >/dev/null || lapse help --man | groff -man -Tascii -ww >/dev/null
$ lapse kernel --help
| usage: lapse kernel MODEL [options]
|
| Shows the periods of a model's time encoding with their amplitudes, the kernel
| K(lag) that they make, which tells how alike two moments are to the model when
| they lie so far apart, and the features Phi(lag) themselves. docs/theory.md has
| the formulas.
|
|   MODEL                     a model that sees lags
|
| Options:
|   --axis AXIS               how lags are spaced: log, linear (default: log)
|   --from DURATION           the first lag, such as 1m (default: a tenth of the
|                             shortest period; 0 on a linear axis)
|   --to DURATION             the last lag, such as 2y (default: the longest
|                             period)
|   --points N                how many lags; a picture has one for each of its
|                             pixels (default: 60)
|   --part PART               what is shown: all, spectrum, kernel, phi (default:
|                             all)
|   --top N                   frequencies shown as text, heaviest first; 0 is all
|                             (default: 12)
|   --csv                     print a row for each lag with K and Phi, or with
|                             --part spectrum one for each frequency
|   --json                    print one JSON object
|   --svg FILE                draw all parts into this file instead; - is standard
|                             output (default: not drawn)
|
| Examples:
|   lapse kernel model.safetensors
|   lapse kernel model.safetensors --axis linear --to 30d --svg kernel.svg
|   lapse kernel model.safetensors --csv --part spectrum
$ lapse bound --help
| usage: lapse bound --tmax DURATION --sigma N/DURATION [options]
|
| Tells how many frequencies must be drawn for the mean of their cosines to come
| within epsilon of the kernel at every lag up to tmax: as Claim 1 of the paper is
| printed, whose answer depends on the unit of time, and as its proof gives it
| when it is corrected. Beside each stands the error measured for that number on a
| kernel whose frequencies are known to be normal. docs/theory.md goes through the
| proof.
|
| Options:
|   --epsilon E               the largest error allowed; the kernel is 1 at lag 0
|                             (default: 0.1)
|   --tmax DURATION           the largest lag, such as 30d
|   --sigma N/DURATION        the spread of the frequencies, such as 1/2h
|   --delta D                 the chance of a larger error (default: 0.05)
|   --repeats N               draws to measure the error by; 0 measures nothing
|                             (default: 20)
|   --seed N                  the same seed draws the same frequencies (default:
|                             1)
|   --threads N               threads to use; never changes the result (default:
|                             all cores)
|   --json                    print one JSON object
|
| Examples:
|   lapse bound --epsilon 0.1 --tmax 30d --sigma 1/2h
|   lapse bound --epsilon 0.2 --tmax 1y --sigma 1/7d --delta 0.01 --repeats 50
