# The help of every verb, with the defaults.
$ lapse demo --help
| usage: lapse demo [options]
|
| Simulates a shop whose law is known, trains the baselines (majority, Markov
| chains) and attention with three ways to see time at equal size, and shows in
| one table what each reached of what is possible. Then tells what happens next to
| one shopper, writes the report of `lapse inspect`, and prints the commands that
| do the same with data of your own. Takes under a minute.
|
| Options:
|   --seed N                  another seed is another shop and another training
|                             (default: 1)
|   --threads N               threads to use; never changes the result (default:
|                             all cores)
|   --keep FOLDER             keep events, dataset, models and report in this
|                             folder (default: only the report is kept, in a
|                             temporary folder)
|   --json                    print the table as one JSON object
|
| Examples:
|   lapse demo
|   lapse demo --keep shop
$ lapse simulate --help
| usage: lapse simulate -o FILE [options]
|
| Simulates sequences of events from a known process, so the best possible
| prediction is known too. The preset shop is a Hawkes process: items are bought
| again after their own period, views decay within the hour, accessories follow a
| purchase after days, and habits are weekly. The preset cycle has ten event types
| in a fixed order, which holds after short gaps only. The preset catalogue has
| any number of items, in categories, series and brands, some of them new; it has
| no --law. The preset sessions is a shop of any number of items whose users come
| back in sessions to search, view and buy; departments differ in how long an
| interest lasts.
|
| Options:
|   -o, --output FILE         CSV file to write; - is standard output
|   --preset NAME             simulated process: shop, cycle, catalogue or
|                             sessions (default: shop)
|   --law FILE                CSV file with the true probability of each event
|                             type at each event (default: none)
|   --catalogue FILE          CSV file with one row per item of the presets
|                             catalogue and sessions: item,name,brand,category
|                             (default: none)
|   --items N                 catalogue size of the presets catalogue and
|                             sessions, in items; sessions has at least 500
|                             (default: that of the preset)
|   --sequences N             number of sequences (default: that of the preset)
|   --days DAYS               length of each sequence, in days; 0 is that of the
|                             preset (default: 0)
|   --seed N                  random seed (default: 1)
|   --score MODEL             model file: prints the best possible scores, those
|                             of the law, on the events that `lapse eval` scores
|                             for this model (default: none)
|   --data DATA               dataset file of --score, imported from these events
|                             (default: none)
|   --cases N                 maximum number of events that --score ranks, sampled
|                             at random (default: all)
|   --horizon DURATION        with --score: compare the expected number of events
|                             within this horizon, such as 7d, by the model and by
|                             the law (default: no forecast)
|   --now TIME                with --horizon: time from which on it counts, given
|                             that nothing has happened since the last event
|                             (default: the last event of each sequence)
|   --samples N               with --horizon: drawn futures of each sequence
|                             (default: 100)
|   --json                    JSON output of --score: one object
|
| Examples:
|   lapse simulate --preset shop -o shop.csv --law law.csv
|   lapse simulate --preset catalogue --items 1700000 --sequences 72000 -o c.csv --catalogue c-items.csv
|   lapse simulate --preset sessions -o s.csv
|   lapse simulate --preset sessions -o /dev/null --score m.safetensors --data s.lapse
$ lapse import --help
| usage: lapse import [INPUT] -o DATASET [options]
|
| Reads events (sequence, timestamp, event type) from CSV, TSV or JSON, one event
| per row. Columns that are not given are found by the values of the first rows
| and their names, and printed; where that is not certain, it prints a command to
| paste. Sorts events by sequence and time, optionally splits sequences into
| sessions and drops duplicates, filters rare event types and short sequences, and
| writes a dataset file. The output file is replaced atomically.
|
|   INPUT                     CSV, TSV or JSON file, plain or gzip, one event per
|                             row; - is standard input
|
| Options:
|   -o, --output DATASET      dataset file to write
|   --threads N               CPU threads (default: all cores)
|   --memory SIZE             memory at most, such as 2G: the rest is in a
|                             temporary file beside the dataset (default: as much
|                             as it needs)
|   --store STORE             read the histories of lapse serve, which may run,
|                             instead of INPUT: FILE.db or postgresql://...
|                             (default: none)
|   --json                    JSON output: one object
|
| Text input:
|   --sequence COLUMN         sequence (user, session) column: name, or number
|                             from 1 (default: found by values and name)
|   --time COLUMN             timestamp column (default: found by values and name)
|   --event COLUMN[,...]      event type (item) column; several are joined into
|                             one name (default: found by values and name)
|   --action COLUMN           action column (view, search, purchase): a
|                             categorical field that can also be a prediction
|                             target (default: none)
|   --field COLUMN            categorical field column, an input feature of past
|                             events; repeatable
|   --number COLUMN           numeric field column, an input feature of past
|                             events; empty, NaN, NA or null if missing;
|                             repeatable
|   --split-column COLUMN     split column, with the values train, valid and test
|                             (default: none)
|   --time-unit UNIT          timestamp format: s, ms, us and ns are Unix time,
|                             iso is ISO 8601, mdy and dmy are dates such as
|                             11/15/2026 and 15/11/2026, text is 15 Nov 2026,
|                             compact is 20261115, excel is day numbers of
|                             spreadsheets, relative is numbers since a start of
|                             their own, auto detects it (default: auto)
|   --timezone ZONE           time zone of timestamps without one: a name such as
|                             Europe/Berlin, or an offset such as +02:00 (default:
|                             UTC)
|   --delimiter CHARACTER     field delimiter of CSV; "tab" is a tab (default:
|                             detected in the first line)
|   --text-encoding NAME      encoding: utf-8, utf-16le, utf-16be, windows-1250,
|                             windows-1251, windows-1252 or latin-1; also
|                             --encoding, except where that is the time encoding
|                             (default: found)
|   --basket                  events of one sequence and time have no order, like
|                             the items of an order: shuffle them
|   --no-header               no header: the first line is data, and columns are
|                             given by number
|   --bad-rows ACTION         malformed rows: stop with an error, or skip them
|                             (default: stop)
|   --session-gap DURATION    session gap: split a sequence between events further
|                             apart than this, such as 30m; the sessions are named
|                             SEQUENCE/1, SEQUENCE/2, ... (default: no splitting)
|   --deduplicate RULE        deduplication: none, exact (same sequence, time and
|                             event as another row) or consecutive (same event as
|                             the previous row of the sequence) (default: none)
|   --min-sequence-events N   minimum events per sequence of the source, before
|                             sessions are split; shorter sequences are dropped
|                             (default: 1)
|   --min-users N             minimum sequences of the source that have an event
|                             type; others are dropped, after
|                             --min-sequence-events is applied (default: 1)
|   --min-events N            minimum events per sequence; shorter sequences are
|                             dropped (default: 1)
|   --min-count N             minimum occurrences per event type; rarer ones are
|                             dropped, before --min-events is applied (default: 1)
|   --min-rounds RULE         application of --min-count and --min-events: once,
|                             or iterated until no row is dropped (k-core)
|                             (default: once)
|
| Columns are found by their values and these names (case, blanks and _ do not matter):
|   sequence                  sequence_id, sequence, user_id, user, uid, username,
|                             customer_id, customer, cust_id, client_id, client,
|                             visitor_id, visitor, full_visitor_id, member_id,
|                             member, subscriber_id, account_id, account,
|                             patient_id, patient, subject_id, subject, person_id,
|                             person, player_id, student_id, reviewer_id,
|                             household_key, case_id, case:concept:name, case,
|                             session_id, session, device_id, device, machine_id,
|                             vehicle_id, trace_id, ip, id
|   time                      timestamp, event_time, event_timestamp, time,
|                             datetime, timestamp_ms, ts, unix_time, epoch,
|                             time:timestamp, order_date, purchase_date,
|                             invoice_date, transaction_date, occurred_at,
|                             created_at, created, start_time, started_at,
|                             visit_date, event_date, unix_review_time, date, when
|   event                     event, event_type, event_name, action, action_type,
|                             activity, concept:name, interaction, behavior,
|                             behavior_type, type, item_id, item, product_id,
|                             product, sku, stock_code, article_id, article, asin,
|                             movie_id, movie, track_id, song_id, book_id, isbn,
|                             video_id, game_id, news_id, business_id, venue_id,
|                             page, url, code, diagnosis, procedure, drug, kind,
|                             product_name, category, label, status, title, name
|
| Examples:
|   lapse import events.csv -o events.lapse --sequence user --time time --event action,item
|   lapse import shop.csv -o shop.lapse --event item --action action --field device --number price
|   lapse import log.jsonl -o log.lapse --sequence user.id --timezone Europe/Berlin
|   zcat big.tsv.gz | lapse import - -o big.lapse --min-events 5 --bad-rows skip
|   lapse import clicks.csv -o clicks.lapse --session-gap 30m --deduplicate consecutive --min-events 2
|   lapse import --store shop.db -o next.lapse --min-events 2
|   lapse import films.csv -o films.lapse --min-count 5 --min-events 5 --min-rounds iterated
$ lapse info --help
| usage: lapse info FILE [options]
|
| Verifies a dataset, model or item-vector file, or events in text, and prints its
| metadata: source, sizes, settings and split. For a model it prints a card
| (--all: all its settings by their keys), the history of its training run as a
| chart, and its scores beside those of baselines.
|
|   FILE                      dataset, model or item-vector file, or events in
|                             text; - is standard input
|
| Options:
|   --event-types             list of event types (of items, for item vectors)
|   --history                 table of all epochs of a model's training run, below
|                             the chart
|   --all                     every setting of a model by its key, instead of the
|                             card
|   --vectors FILE            file for the item vectors of a recommender, .csv or
|                             .npy, instead of the metadata: rows in the order of
|                             item ids, the last number being the item's bias. The
|                             product with a vector of `lapse predict --vectors`
|                             is the score (default: none)
|   --json                    JSON output: one object
|
| Text input:
|   --sequence COLUMN         sequence (user, session) column: name, or number
|                             from 1 (default: found by values and name)
|   --time COLUMN             timestamp column (default: found by values and name)
|   --event COLUMN[,...]      event type (item) column; several are joined into
|                             one name (default: found by values and name)
|
| Examples:
|   lapse info events.lapse --event-types
|   lapse info events.csv
|   lapse info model.safetensors --json
|
| `lapse info --help all` shows every option, 18 more.
$ lapse train --help
| usage: lapse train DATA -o MODEL [options]
|
| Trains on the training split, keeps the parameters that were best on the
| validation split, and evaluates them on the test split, beside baselines.
| Options that are not set are chosen from the data. Ctrl-C stops after the
| current step and saves the best model so far; --resume continues from there.
| Under mpirun or srun, all processes train one model, with the same result.
|
|   DATA                      dataset file from `lapse import`, or events in text,
|                             plain or gzip, one per row; - is standard input
|
| Options:
|   -o, --output MODEL        model file to write
|   --json                    print settings and scores as one JSON object
|
| Model:
|   --model NAME              model architecture, or a baseline: attention,
|                             sasrec, lstm, gru4rec, rnn-attention, caser,
|                             transrec, rmtpp, timejoint, markov, item-markov,
|                             recency, popularity, majority (default: attention)
|   --size NAME               network size: small, base or large sets dims, and
|                             blocks and heads of attention, which win over it
|                             where they are given; large takes several times as
|                             long (default: small to recommend from fewer than 20
|                             events per item, otherwise base)
|   --task NAME               task: classify predicts which of a few event types
|                             comes next, recommend ranks a catalogue of items; a
|                             model with one task needs no --task (default:
|                             classify)
|   --target-time RULE        target time: known conditions on the time of the
|                             predicted event, unknown on the last event's time
|                             (default: known)
|   --context N               context length: past events that the model sees
|                             (default: chosen from the data)
|   --dims N                  embedding and hidden dimensions (default: chosen
|                             from the data)
|   --dropout RATE            dropout rate, 0 to 0.9 (default: 0.3)
|   --when                    learn the time of the next event too: a mixture of
|                             log-normals, by a second network of the same
|                             architecture, which is trained after that of the
|                             events
|   --when-background NAME    background of the time of the next event (--when), a
|                             Poisson process beside the mixture whose rate
|                             depends on the history: none, constant, or week: its
|                             rate follows the hour of the week, in UTC, by a
|                             profile of the training split (default: week)
|   --target action=NAME      target events: only events with this action are
|                             predicted, such as action=view, the others are
|                             context (default: all)
|   --encoding NAME           time encoding: how the model sees the lag from each
|                             past event to the query time; recurrent models see
|                             the last event's, and have none by default: mercer,
|                             bochner, bochner-normal, bochner-invcdf, random,
|                             position, sinusoid, none (default: mercer)
|   --blocks N                number of attention blocks, 1 to 8 (default: 2)
|
| Training:
|   --learning-rate X         learning rate of Adam (default: 0.001, or 0.002 with
|                             fewer than 640 training windows)
|   --batch N                 batch size, in windows of events (default: chosen
|                             from the data)
|   --epochs N                maximum number of epochs (default: 100)
|   --patience N              early-stopping patience: epochs without a better
|                             validation score (default: 15 with ema-decay,
|                             otherwise 10)
|   --loss NAME               loss function: softmax (cross-entropy over the
|                             catalogue), sampled-softmax (over a sample of it),
|                             or over negatives of each target, bce (binary
|                             cross-entropy), bpr (pairwise ranking), bpr-max
|                             (ranking against hard negatives), top1 (ranking,
|                             with scores near 0), top1-max (the same, bounded)
|                             (default: bce for sasrec and caser, bpr for
|                             transrec, that of --preset for gru4rec, otherwise by
|                             the size of the catalogue)
|   --censoring RULE          right censoring (--when, rmtpp): the gap after the
|                             last event of a sequence is still open at the end of
|                             the data, and counts as at least that long; so
|                             histories can end for good. off learns only gaps
|                             that have ended, and overstates the chance of a
|                             return. auto is on where sequences share an end of
|                             observation (default: auto)
|
| Run:
|   --split-by RULE           train/validation/test split: by a column of the
|                             source, by sequence at random, leave-one-out, by the
|                             start time of sequences, or by that of sessions
|                             (events up to 30 minutes apart): column, sequence,
|                             leave-one-out, time, session (default: column where
|                             the dataset has one, otherwise by the task)
|   --seed N                  random seed of the split by sequence, the initial
|                             parameters, dropout and shuffling (default: 1)
|   --device DEVICE           device: cpu, cuda (an NVIDIA GPU), or auto (a GPU
|                             where one can be used) (default: cpu)
|   --threads N               number of threads; does not change the result
|                             (default: all cores)
|   --resume                  resume from the checkpoint, if it exists
|
| Text input:
|   --sequence COLUMN         sequence (user, session) column: name, or number
|                             from 1 (default: found by values and name)
|   --time COLUMN             timestamp column (default: found by values and name)
|   --event COLUMN[,...]      event type (item) column; several are joined into
|                             one name (default: found by values and name)
|
| Examples:
|   lapse train events.lapse -o model.safetensors --task classify
|   lapse train events.csv -o model.safetensors --sequence user --time time --event item
|   lapse train events.lapse -o markov.safetensors --model markov --order 2
|   lapse train events.lapse -o model.safetensors --resume
|   lapse train newer.lapse -o newer.safetensors --like model.safetensors
|
| `lapse train --help all` shows every option, 72 more.
$ lapse eval -h
| usage: lapse eval MODEL DATA [options]
|
| Evaluates a model on every event except the first of each sequence. The model
| file stores the split of the training data, so the test split contains no
| training data. A classifier is evaluated by accuracy, log-loss and macro-F1; a
| recommender by the rank of the target item (Hit@K, NDCG@K, MRR): in the full
| catalogue, with and without items already in the history, and among negative
| samples, uniform and by popularity.
|
|   MODEL                     model file from `lapse train`
|   DATA                      dataset file from `lapse import`, or events in text,
|                             plain or gzip, one per row; - is standard input
|
| Options:
|   --split SPLIT             split to evaluate: test, valid, train, all (default:
|                             test)
|   --target action=NAME      target events: only events with this action are
|                             scored, such as action=view, or all (default: as in
|                             training)
|   --classes                 per-class table with precision, recall and F1
|   --cutoffs K,K             recommend: cutoffs K of Hit@K and NDCG@K (default:
|                             5,10)
|   --negatives N             recommend: negative samples per event for the
|                             sampled metrics, uniform and by popularity; 0
|                             computes full-catalogue metrics only (default: 100)
|   --negative-seed N         recommend: random seed of the sampled items and
|                             events (default: 1)
|   --cases N                 recommend: maximum number of events to rank, sampled
|                             at random (default: all)
|   --slices                  recommend: tables by history length, item popularity
|                             and lag
|   --within DURATIONS        score the chances of at least one event within each
|                             duration after --now, such as 1d,7d,30d, and the
|                             expected number of events, beside a constant, a
|                             logistic regression on recency, frequency and age,
|                             and BG/NBD; instead of the scores of the next event
|                             (default: none)
|   --now TIME                --within: time up to which histories are known; what
|                             they did later is held out: a time, or end, the
|                             longest --within before the end of the data
|                             (default: end; where the split divides sequences at
|                             a time, that time)
|   --samples N               --within: futures of each history, for the expected
|                             number of events (default: 20)
|   --bootstrap N             bootstrap resamples of the sequences for the 95 %
|                             intervals; 0 disables them (default: 1000)
|   --device DEVICE           compute device: cpu, cuda (NVIDIA GPU), or auto
|                             (cuda if available) (default: cpu)
|   --threads N               CPU threads; does not change the result (default:
|                             all cores)
|   --json                    JSON output: one object
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
|   lapse eval model.safetensors events.lapse --split test --classes
|   lapse eval shop.safetensors shop.lapse --within 1d,7d,30d
|   lapse eval recommender.safetensors events.lapse --cutoffs 1,5,10,20 --slices
|
| `lapse eval --help all` shows every option, 19 more.
$ lapse predict --help
| usage: lapse predict MODEL HISTORY [options]
|
| Reads histories and predicts for each: if the next event happens at the query
| time, which event is it? Prints the most probable event types with their
| probabilities; for a recommender, items with their scores. With --when it
| predicts instead when the next event comes.
|
|   MODEL                     model file from `lapse train`
|   HISTORY                   dataset file from `lapse import`, or events in text,
|                             plain or gzip, one per row; - is standard input
|
| Options:
|   --at TIME                 query time: Unix seconds, ISO 8601, now, +3d for 3
|                             days after the last event of each sequence, or a
|                             sweep 1h..30d/20 of 20 times after it, spaced evenly
|                             in log time; repeatable. Histories that end after a
|                             query time are skipped; it is an error if all are
|   --when                    predict the time of the next event instead: its
|                             median and an interval of 80 %; the model must be
|                             trained with --when
|   --within DURATIONS        --when, and the probability that the next event
|                             comes within each duration after now, such as 1d,7d;
|                             and of the most probable types that it does and is
|                             of this type (default: none)
|   --now TIME                with --when: time up to which nothing has happened
|                             since the last event of each history: end (of the
|                             newest event in HISTORY), now, last (each history's
|                             last event), Unix seconds or ISO 8601. Histories
|                             that end later are asked from their last event
|                             (default: end)
|   --top K                   top-k: number of predictions to print, the most
|                             probable first; 0 prints all (default: 5)
|   --only NAME               only the history of this name (the user); repeatable
|   --unseen                  exclude event types that are already in the history
|   --unknown ACTION          events that the model does not know: stop with an
|                             error, or skip them (default: error)
|   -o, --output FILE         file to write, replaced atomically (default:
|                             standard output)
|   --vectors FILE            file for the state vectors of a recommender at the
|                             query times, .csv or .npy, instead of predictions:
|                             the last number of each is 1. The product with an
|                             item's vector of `lapse info --vectors` is its score
|                             (default: none)
|   --csv                     CSV output: one prediction per row
|   --csv-safe                CSV whose text cells are not run as formulas by
|                             spreadsheets: an apostrophe before =, +, -, @, tab
|                             and line breaks
|   --json                    JSON output: one object
|   --threads N               CPU threads (default: all cores)
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
|   lapse predict model.safetensors history.csv --at '2026-11-15T12:00:00Z' --top 5
|   lapse predict model.safetensors history.csv --at +1h --at +3d --at +2w --json
|   lapse predict model.safetensors events.lapse --at 1h..30d/20 --top 1 --csv -o next.csv
|   lapse predict shop.safetensors customers.csv --at now --top 10 --unseen
|   lapse predict shop.safetensors customers.csv --when --within 1d,7d
|
| `lapse predict --help all` shows every option, 18 more.
$ lapse help --help
| usage: lapse help [VERB] [all] [options]
|
| Explains a verb: its arguments, its options and their defaults. `lapse help
| VERB` is the same as `lapse VERB --help`, and `lapse help VERB all` the same as
| `lapse VERB --help all`.
|
|   VERB                      verb to explain (default: list all verbs)
|   all                       include the advanced options
|
| Options:
|   --man                     man page in troff format, instead of help
|   --completion              completion for bash (and zsh, after bashcompinit),
|                             instead of help
|
| Examples:
|   lapse help train
|   lapse help train all
|   lapse help --man | man -l -
|   source <(lapse help --completion)

# `--help all` shows every option; `lapse help VERB all` is the same.
$ lapse train --help all >all; lapse help train all | diff all - && lapse train --help=all | diff all - && lapse train -h all | diff all -
$ lapse train --help all | grep -c '^  -'
| 100
$ lapse train --help all | grep -E '^[A-Z][a-z]+:$'
| Options:
| Model:
| Training:
| Run:
| Examples:
$ lapse help --man | sed -n '/^\.SS train/,/^\.SS compare/p' | grep -c '^\\fB'
| 101
$ lapse eval --help >common; lapse eval --help all | diff common -
| 48a49,51
| >   --shard-items             recommend, under mpirun: each rank loads a part of
| >                             the rows of the item tables; does not change the
| >                             result
| 59a63,112
| >   --action COLUMN           action column (view, search, purchase): a
| >                             categorical field that can also be a prediction
| >                             target (default: that of the training data)
| >   --field COLUMN            categorical field column, an input feature of past
| >                             events; repeatable
| >   --number COLUMN           numeric field column, an input feature of past
| >                             events; empty, NaN, NA or null if missing;
| >                             repeatable
| >   --split-column COLUMN     split column, with the values train, valid and test
| >                             (default: none)
| >   --time-unit UNIT          timestamp format: s, ms, us and ns are Unix time,
| >                             iso is ISO 8601, mdy and dmy are dates such as
| >                             11/15/2026 and 15/11/2026, text is 15 Nov 2026,
| >                             compact is 20261115, excel is day numbers of
| >                             spreadsheets, relative is numbers since a start of
| >                             their own, auto detects it (default: auto)
| >   --timezone ZONE           time zone of timestamps without one: a name such as
| >                             Europe/Berlin, or an offset such as +02:00 (default:
| >                             UTC)
| >   --delimiter CHARACTER     field delimiter of CSV; "tab" is a tab (default:
| >                             detected in the first line)
| >   --text-encoding NAME      encoding: utf-8, utf-16le, utf-16be, windows-1250,
| >                             windows-1251, windows-1252 or latin-1; also
| >                             --encoding, except where that is the time encoding
| >                             (default: found)
| >   --basket                  events of one sequence and time have no order, like
| >                             the items of an order: shuffle them
| >   --no-header               no header: the first line is data, and columns are
| >                             given by number
| >   --bad-rows ACTION         malformed rows: stop with an error, or skip them
| >                             (default: stop)
| >   --session-gap DURATION    session gap: split a sequence between events further
| >                             apart than this, such as 30m; the sessions are named
| >                             SEQUENCE/1, SEQUENCE/2, ... (default: no splitting)
| >   --deduplicate RULE        deduplication: none, exact (same sequence, time and
| >                             event as another row) or consecutive (same event as
| >                             the previous row of the sequence) (default: none)
| >   --min-sequence-events N   minimum events per sequence of the source, before
| >                             sessions are split; shorter sequences are dropped
| >                             (default: 1)
| >   --min-users N             minimum sequences of the source that have an event
| >                             type; others are dropped, after
| >                             --min-sequence-events is applied (default: 1)
| >   --min-events N            minimum events per sequence; shorter sequences are
| >                             dropped (default: 1)
| >   --min-count N             minimum occurrences per event type; rarer ones are
| >                             dropped, before --min-events is applied (default: 1)
| >   --min-rounds RULE         application of --min-count and --min-events: once,
| >                             or iterated until no row is dropped (k-core)
| >                             (default: once)
| 65,66d117
| < 
| < `lapse eval --help all` shows every option, 19 more.
= 1
$ lapse help eval everything
! lapse: help: unexpected argument 'everything'; only 'all' may follow the verb
! lapse: see `lapse help --help`
= 2
$ lapse help evla all
! lapse: unknown verb 'evla'; did you mean eval?
! lapse: see `lapse --help`
= 2
$ lapse train --epochs 3 --help | head -1
| usage: lapse train DATA -o MODEL [options]
$ lapse help predict | head -1
| usage: lapse predict MODEL HISTORY [options]

# groff accepts the man page without warnings, if groff is installed.
$ lapse help --man | head -5
| .TH LAPSE 1 "" "Lapse 0.1.0" "User Commands"
| .SH NAME
| lapse \- train models on timestamped events, and predict what happens at a time
| .SH SYNOPSIS
| .B lapse demo
$ lapse help --man | sed -n '/^\.SH DESC/,/^\.SS simulate/p; /^\.SH EXIT/,/^\.SH EX/p'
| .SH DESCRIPTION
| Lapse trains models on sequences of timestamped events, by self\-attention with functional time encodings,
| and predicts: given this history, what happens at time t?
| Results go to standard output as text, or as one JSON object with \fB\-\-json\fR; progress and notes go to
| standard error. Options are accepted in any position, as \fB\-\-name value\fR or
| \fB\-\-name=value\fR, and cannot be abbreviated; \fB\-\-\fR ends them. As a file, \fB\-\fR is standard
| input or output.
| .SH VERBS
| .SS demo
| .B lapse demo
| [options]
| .PP
| Simulates a shop whose law is known, trains the baselines (majority, Markov chains) and attention with three ways to see time at equal size, and shows in one table what each reached of what is possible. Then tells what happens next to one shopper, writes the report of \(galapse inspect\(ga, and prints the commands that do the same with data of your own. Takes under a minute.
| .TP
| \fB\-\-seed\fR \fIN\fR
| another seed is another shop and another training (default: 1).
| .TP
| \fB\-\-threads\fR \fIN\fR
| threads to use; never changes the result (default: all cores).
| .TP
| \fB\-\-keep\fR \fIFOLDER\fR
| keep events, dataset, models and report in this folder (default: only the report is kept, in a temporary folder).
| .TP
| \fB\-\-json\fR
| print the table as one JSON object.
| .SS simulate
| .SH EXIT STATUS
| .TP
| 0
| Success.
| .TP
| 1
| Failure: a file could not be read or written, or has the wrong format.
| .TP
| 2
| The command line is invalid.
| .TP
| 130
| Interrupted; the best model so far has been saved.
| .SH EXAMPLES
$ lapse help --man | grep -F '(aq' | cut -c1-110 | sort -u | head -5
| Adam\(aqs beta1: decay rate of the mean of gradients (default: 0.9).
| Adam\(aqs beta2: decay rate of the mean of squared gradients (default: 0.98).
| Shows the periods of a model\(aqs time encoding with their amplitudes (the spectrum), the kernel K(lag), which
| Trains or scores on simulated events, with the sizes of a known task or sizes of your own. Prints the time of 
| exponent of an item\(aqs count when negatives are sampled by popularity (default: 0.75).
$ lapse help --man | grep -c '^\.SS'
| 19
$ ! command -v groff >/dev/null || lapse help --man | groff -man -Tascii -ww >/dev/null
$ lapse kernel --help
| usage: lapse kernel MODEL [options]
|
| Shows the periods of a model's time encoding with their amplitudes (the
| spectrum), the kernel K(lag), which is the similarity of two timestamps at that
| lag, and the features Phi(lag). docs/theory.md has the formulas.
|
|   MODEL                     model file with a time encoding
|
| Options:
|   --axis AXIS               spacing of the lags: log, linear (default: log)
|   --from DURATION           first lag, such as 1m (default: 1/10 of the shortest
|                             period; 0 on a linear axis)
|   --to DURATION             last lag, such as 2y (default: the longest period)
|   --points N                number of lags; a plot has one per pixel column
|                             (default: 60)
|   --part PART               part to print: all, spectrum, kernel, phi (default:
|                             all)
|   --top N                   frequencies to print, by descending weight; 0 prints
|                             all (default: 12)
|   --csv                     CSV output: one row per lag with K and Phi; with
|                             --part spectrum, one per frequency
|   --json                    JSON output: one object
|   --svg FILE                SVG plot of all parts, instead of text; - is
|                             standard output (default: none)
|
| Examples:
|   lapse kernel model.safetensors
|   lapse kernel model.safetensors --axis linear --to 30d --svg kernel.svg
|   lapse kernel model.safetensors --csv --part spectrum
$ lapse bound --help
| usage: lapse bound --tmax DURATION --sigma N/DURATION [options]
|
| Computes how many random frequencies make the mean of their cosines approximate
| the kernel within epsilon at every lag up to tmax: by Claim 1 of the paper as
| printed, whose result depends on the unit of time, and by its corrected proof.
| For each number, the error is measured on a kernel whose frequencies are
| normally distributed. docs/theory.md explains the proof.
|
| Options:
|   --epsilon E               maximum error of the kernel estimate; the kernel is
|                             1 at lag 0 (default: 0.1)
|   --tmax DURATION           maximum lag, such as 30d
|   --sigma N/DURATION        standard deviation of the frequencies, in radians
|                             per duration, such as 1/2h
|   --delta D                 failure probability: that of a larger error
|                             (default: 0.05)
|   --repeats N               random draws for measuring the error; 0 disables the
|                             measurement (default: 20)
|   --seed N                  random seed of the frequencies (default: 1)
|   --threads N               CPU threads; does not change the result (default:
|                             all cores)
|   --json                    JSON output: one object
|
| Examples:
|   lapse bound --epsilon 0.1 --tmax 30d --sigma 1/2h
|   lapse bound --epsilon 0.2 --tmax 1y --sigma 1/7d --delta 0.01 --repeats 50
