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
|                             sessions, in items (default: that of the preset)
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
| usage: lapse import INPUT -o DATASET [options]
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
|   --text-encoding NAME      encoding: utf-8, utf-16le, utf-16be, windows-1252 or
|                             latin-1; also --encoding, except where that is the
|                             time encoding (default: found)
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
|                             log-normals, from the state of the same network
|                             before the target time is known
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
|   --learning-rate X         learning rate of Adam (default: 0.001)
|   --batch N                 batch size, in windows of events (default: chosen
|                             from the data)
|   --epochs N                maximum number of epochs (default: 100)
|   --patience N              early-stopping patience: epochs without a better
|                             validation score (default: 10)
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
| `lapse train --help all` shows every option, 73 more.
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
|                             they did later is held out (default: the longest
|                             --within before the end of the data; where the split
|                             divides sequences at a time, that time)
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
| `lapse eval --help all` shows every option, 18 more.
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
|
| Examples:
|   lapse help train
|   lapse help train all
|   lapse help --man | man -l -

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
| 58a59,107
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
| >   --text-encoding NAME      encoding: utf-8, utf-16le, utf-16be, windows-1252 or
| >                             latin-1; also --encoding, except where that is the
| >                             time encoding (default: found)
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
| 64,65d112
| < 
| < `lapse eval --help all` shows every option, 18 more.
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
| \(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq
| .TP
| \fB\-\-\(aq\(aq\(aq\(aq\fR \fI\(aq\fR
| \(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq.
| .TP
| \fB\-\-\(aq\(aq\(aq\(aq\(aq\(aq\(aq\fR \fI\(aq\fR
| \(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq.
| .TP
| \fB\-\-\(aq\(aq\(aq\(aq\fR \fI\(aq\(aq\(aq\(aq\(aq\(aq\fR
| \(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq.
| .TP
| \fB\-\-\(aq\(aq\(aq\(aq\fR
| \(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq.
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
| \(aq\(aq\(aq\(aq'\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\
| \(aq\(aq\(aq\(aq\(aq\(aq.
| \(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq
| \(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq
| \(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq\(aq.
$ lapse help --man | grep -c '^\.SS'
| 19
$ ! command -v groff >/dev/null || lapse help --man | groff -man -Tascii -ww >/dev/null
! troff: <standard input>:103: warning [p 1, 7.0i]: can't break line
! troff: <standard input>:112: warning [p 1, 8.5i]: can't break line
! troff: <standard input>:121: warning [p 1, 9.7i]: can't break line
! troff: <standard input>:127: warning [p 1, 10.7i]: can't break line
! troff: <standard input>:130: warning [p 2, 0.2i]: can't break line
! troff: <standard input>:133: warning [p 2, 0.7i]: can't break line
! troff: <standard input>:136: warning [p 2, 1.2i]: can't break line
! troff: <standard input>:142: warning [p 2, 2.2i]: can't break line
! troff: <standard input>:148: warning [p 2, 3.2i]: can't break line
! troff: <standard input>:151: warning [p 2, 3.7i]: can't break line
! troff: <standard input>:154: warning [p 2, 4.2i]: can't break line
! troff: <standard input>:157: warning [p 2, 4.7i]: can't break line
! troff: <standard input>:160: warning [p 2, 5.2i]: can't break line
! troff: <standard input>:173: warning [p 2, 6.8i]: can't break line
! troff: <standard input>:176: warning [p 2, 7.2i]: can't break line
! troff: <standard input>:188: warning [p 2, 9.0i]: can't break line
! troff: <standard input>:194: warning [p 2, 10.0i]: can't break line
! troff: <standard input>:197: warning [p 2, 10.5i]: can't break line
! troff: <standard input>:200: warning [p 2, 11.0i]: can't break line
! troff: <standard input>:203: warning [p 3, 0.2i]: can't break line
! troff: <standard input>:206: warning [p 3, 0.7i]: can't break line
! troff: <standard input>:209: warning [p 3, 1.2i]: can't break line
! troff: <standard input>:212: warning [p 3, 1.7i]: can't break line
! troff: <standard input>:215: warning [p 3, 2.2i]: can't break line
! troff: <standard input>:218: warning [p 3, 2.7i]: can't break line
! troff: <standard input>:221: warning [p 3, 3.2i]: can't break line
! troff: <standard input>:224: warning [p 3, 3.7i]: can't break line
! troff: <standard input>:227: warning [p 3, 4.2i]: can't break line
! troff: <standard input>:230: warning [p 3, 4.7i]: can't break line
! troff: <standard input>:233: warning [p 3, 5.2i]: can't break line
! troff: <standard input>:236: warning [p 3, 5.7i]: can't break line
! troff: <standard input>:239: warning [p 3, 6.2i]: can't break line
! troff: <standard input>:242: warning [p 3, 6.7i]: can't break line
! troff: <standard input>:245: warning [p 3, 7.2i]: can't break line
! troff: <standard input>:248: warning [p 3, 7.7i]: can't break line
! troff: <standard input>:253: warning [p 3, 8.7i]: can't break line
! troff: <standard input>:256: warning [p 3, 9.0i]: can't break line
! troff: <standard input>:259: warning [p 3, 9.3i]: can't break line
! troff: <standard input>:265: warning [p 3, 10.2i]: can't break line
! troff: <standard input>:268: warning [p 3, 10.5i]: can't break line
! troff: <standard input>:280: warning [p 4, 1.0i]: can't break line
! troff: <standard input>:286: warning [p 4, 1.8i]: can't break line
! troff: <standard input>:292: warning [p 4, 2.8i]: can't break line
! troff: <standard input>:295: warning [p 4, 3.3i]: can't break line
! troff: <standard input>:298: warning [p 4, 3.8i]: can't break line
! troff: <standard input>:301: warning [p 4, 4.3i]: can't break line
! troff: <standard input>:304: warning [p 4, 4.8i]: can't break line
! troff: <standard input>:307: warning [p 4, 5.3i]: can't break line
! troff: <standard input>:310: warning [p 4, 5.8i]: can't break line
! troff: <standard input>:313: warning [p 4, 6.3i]: can't break line
! troff: <standard input>:316: warning [p 4, 6.8i]: can't break line
! troff: <standard input>:319: warning [p 4, 7.3i]: can't break line
! troff: <standard input>:322: warning [p 4, 7.8i]: can't break line
! troff: <standard input>:325: warning [p 4, 8.3i]: can't break line
! troff: <standard input>:328: warning [p 4, 8.8i]: can't break line
! troff: <standard input>:331: warning [p 4, 9.3i]: can't break line
! troff: <standard input>:334: warning [p 4, 9.8i]: can't break line
! troff: <standard input>:337: warning [p 4, 10.3i]: can't break line
! troff: <standard input>:340: warning [p 4, 10.8i]: can't break line
! troff: <standard input>:343: warning [p 4, 11.3i]: can't break line
! troff: <standard input>:346: warning [p 5, 0.2i]: can't break line
! troff: <standard input>:352: warning [p 5, 1.0i]: can't break line
! troff: <standard input>:355: warning [p 5, 1.3i]: can't break line
! troff: <standard input>:358: warning [p 5, 1.8i]: can't break line
! troff: <standard input>:361: warning [p 5, 2.3i]: can't break line
! troff: <standard input>:364: warning [p 5, 2.8i]: can't break line
! troff: <standard input>:367: warning [p 5, 3.3i]: can't break line
! troff: <standard input>:373: warning [p 5, 4.2i]: can't break line
! troff: <standard input>:379: warning [p 5, 5.2i]: can't break line
! troff: <standard input>:382: warning [p 5, 5.7i]: can't break line
! troff: <standard input>:385: warning [p 5, 6.2i]: can't break line
! troff: <standard input>:388: warning [p 5, 6.7i]: can't break line
! troff: <standard input>:391: warning [p 5, 7.2i]: can't break line
! troff: <standard input>:394: warning [p 5, 7.7i]: can't break line
! troff: <standard input>:397: warning [p 5, 8.2i]: can't break line
! troff: <standard input>:400: warning [p 5, 8.7i]: can't break line
! troff: <standard input>:403: warning [p 5, 9.2i]: can't break line
! troff: <standard input>:406: warning [p 5, 9.7i]: can't break line
! troff: <standard input>:409: warning [p 5, 10.2i]: can't break line
! troff: <standard input>:412: warning [p 5, 10.7i]: can't break line
! troff: <standard input>:415: warning [p 5, 11.2i]: can't break line
! troff: <standard input>:418: warning [p 5, 11.7i]: can't break line
! troff: <standard input>:421: warning [p 6, 0.2i]: can't break line
! troff: <standard input>:424: warning [p 6, 0.7i]: can't break line
! troff: <standard input>:427: warning [p 6, 1.2i]: can't break line
! troff: <standard input>:430: warning [p 6, 1.7i]: can't break line
! troff: <standard input>:433: warning [p 6, 2.2i]: can't break line
! troff: <standard input>:440: warning [p 6, 3.0i]: can't break line
! troff: <standard input>:443: warning [p 6, 3.3i]: can't break line
! troff: <standard input>:449: warning [p 6, 4.3i]: can't break line
! troff: <standard input>:455: warning [p 6, 5.3i]: can't break line
! troff: <standard input>:464: warning [p 6, 6.8i]: can't break line
! troff: <standard input>:470: warning [p 6, 7.8i]: can't break line
! troff: <standard input>:479: warning [p 6, 9.3i]: can't break line
! troff: <standard input>:482: warning [p 6, 9.8i]: can't break line
! troff: <standard input>:488: warning [p 6, 10.7i]: can't break line
! troff: <standard input>:494: warning [p 6, 11.7i]: can't break line
! troff: <standard input>:497: warning [p 7, 0.2i]: can't break line
! troff: <standard input>:500: warning [p 7, 0.7i]: can't break line
! troff: <standard input>:503: warning [p 7, 1.2i]: can't break line
! troff: <standard input>:506: warning [p 7, 1.7i]: can't break line
! troff: <standard input>:509: warning [p 7, 2.2i]: can't break line
! troff: <standard input>:512: warning [p 7, 2.7i]: can't break line
! troff: <standard input>:515: warning [p 7, 3.2i]: can't break line
! troff: <standard input>:518: warning [p 7, 3.7i]: can't break line
! troff: <standard input>:521: warning [p 7, 4.2i]: can't break line
! troff: <standard input>:524: warning [p 7, 4.7i]: can't break line
! troff: <standard input>:527: warning [p 7, 5.2i]: can't break line
! troff: <standard input>:530: warning [p 7, 5.7i]: can't break line
! troff: <standard input>:533: warning [p 7, 6.2i]: can't break line
! troff: <standard input>:536: warning [p 7, 6.7i]: can't break line
! troff: <standard input>:539: warning [p 7, 7.2i]: can't break line
! troff: <standard input>:542: warning [p 7, 7.7i]: can't break line
! troff: <standard input>:545: warning [p 7, 8.2i]: can't break line
! troff: <standard input>:552: warning [p 7, 9.0i]: can't break line
! troff: <standard input>:555: warning [p 7, 9.3i]: can't break line
! troff: <standard input>:561: warning [p 7, 10.3i]: can't break line
! troff: <standard input>:564: warning [p 7, 10.8i]: can't break line
! troff: <standard input>:573: warning [p 8, 0.2i]: can't break line
! troff: <standard input>:576: warning [p 8, 0.7i]: can't break line
! troff: <standard input>:579: warning [p 8, 1.2i]: can't break line
! troff: <standard input>:582: warning [p 8, 1.7i]: can't break line
! troff: <standard input>:591: warning [p 8, 3.2i]: can't break line
! troff: <standard input>:594: warning [p 8, 3.5i]: can't break line
! troff: <standard input>:597: warning [p 8, 4.0i]: can't break line
! troff: <standard input>:600: warning [p 8, 4.5i]: can't break line
! troff: <standard input>:603: warning [p 8, 5.0i]: can't break line
! troff: <standard input>:606: warning [p 8, 5.5i]: can't break line
! troff: <standard input>:609: warning [p 8, 6.0i]: can't break line
! troff: <standard input>:612: warning [p 8, 6.5i]: can't break line
! troff: <standard input>:615: warning [p 8, 7.0i]: can't break line
! troff: <standard input>:618: warning [p 8, 7.5i]: can't break line
! troff: <standard input>:621: warning [p 8, 8.0i]: can't break line
! troff: <standard input>:627: warning [p 8, 9.0i]: can't break line
! troff: <standard input>:630: warning [p 8, 9.5i]: can't break line
! troff: <standard input>:633: warning [p 8, 10.0i]: can't break line
! troff: <standard input>:639: warning [p 8, 11.0i]: can't break line
! troff: <standard input>:642: warning [p 8, 11.5i]: can't break line
! troff: <standard input>:645: warning [p 8, 12.0i]: can't break line
! troff: <standard input>:648: warning [p 9, 0.2i]: can't break line
! troff: <standard input>:651: warning [p 9, 0.7i]: can't break line
! troff: <standard input>:657: warning [p 9, 1.7i]: can't break line
! troff: <standard input>:660: warning [p 9, 2.2i]: can't break line
! troff: <standard input>:663: warning [p 9, 2.7i]: can't break line
! troff: <standard input>:672: warning [p 9, 4.2i]: can't break line
! troff: <standard input>:678: warning [p 9, 5.2i]: can't break line
! troff: <standard input>:681: warning [p 9, 5.7i]: can't break line
! troff: <standard input>:684: warning [p 9, 6.2i]: can't break line
! troff: <standard input>:687: warning [p 9, 6.7i]: can't break line
! troff: <standard input>:690: warning [p 9, 7.2i]: can't break line
! troff: <standard input>:696: warning [p 9, 8.2i]: can't break line
! troff: <standard input>:699: warning [p 9, 8.7i]: can't break line
! troff: <standard input>:702: warning [p 9, 9.2i]: can't break line
! troff: <standard input>:711: warning [p 9, 10.5i]: can't break line
! troff: <standard input>:714: warning [p 9, 11.0i]: can't break line
! troff: <standard input>:720: warning [p 9, 12.0i]: can't break line
! troff: <standard input>:723: warning [p 10, 0.2i]: can't break line
! troff: <standard input>:726: warning [p 10, 0.7i]: can't break line
! troff: <standard input>:729: warning [p 10, 1.2i]: can't break line
! troff: <standard input>:732: warning [p 10, 1.7i]: can't break line
! troff: <standard input>:735: warning [p 10, 2.2i]: can't break line
! troff: <standard input>:738: warning [p 10, 2.7i]: can't break line
! troff: <standard input>:741: warning [p 10, 3.2i]: can't break line
! troff: <standard input>:744: warning [p 10, 3.7i]: can't break line
! troff: <standard input>:747: warning [p 10, 4.2i]: can't break line
! troff: <standard input>:750: warning [p 10, 4.7i]: can't break line
! troff: <standard input>:753: warning [p 10, 5.2i]: can't break line
! troff: <standard input>:756: warning [p 10, 5.7i]: can't break line
! troff: <standard input>:759: warning [p 10, 6.2i]: can't break line
! troff: <standard input>:762: warning [p 10, 6.7i]: can't break line
! troff: <standard input>:765: warning [p 10, 7.2i]: can't break line
! troff: <standard input>:768: warning [p 10, 7.7i]: can't break line
! troff: <standard input>:771: warning [p 10, 8.2i]: can't break line
! troff: <standard input>:774: warning [p 10, 8.7i]: can't break line
! troff: <standard input>:777: warning [p 10, 9.2i]: can't break line
! troff: <standard input>:780: warning [p 10, 9.7i]: can't break line
! troff: <standard input>:783: warning [p 10, 10.2i]: can't break line
! troff: <standard input>:786: warning [p 10, 10.7i]: can't break line
! troff: <standard input>:789: warning [p 10, 11.2i]: can't break line
! troff: <standard input>:792: warning [p 10, 11.7i]: can't break line
! troff: <standard input>:798: warning [p 11, 0.2i]: can't break line
! troff: <standard input>:804: warning [p 11, 1.2i]: can't break line
! troff: <standard input>:807: warning [p 11, 1.7i]: can't break line
! troff: <standard input>:810: warning [p 11, 2.2i]: can't break line
! troff: <standard input>:813: warning [p 11, 2.7i]: can't break line
! troff: <standard input>:816: warning [p 11, 3.2i]: can't break line
! troff: <standard input>:819: warning [p 11, 3.7i]: can't break line
! troff: <standard input>:822: warning [p 11, 4.2i]: can't break line
! troff: <standard input>:825: warning [p 11, 4.7i]: can't break line
! troff: <standard input>:828: warning [p 11, 5.2i]: can't break line
! troff: <standard input>:831: warning [p 11, 5.7i]: can't break line
! troff: <standard input>:834: warning [p 11, 6.2i]: can't break line
! troff: <standard input>:837: warning [p 11, 6.7i]: can't break line
! troff: <standard input>:840: warning [p 11, 7.2i]: can't break line
! troff: <standard input>:843: warning [p 11, 7.7i]: can't break line
! troff: <standard input>:846: warning [p 11, 8.2i]: can't break line
! troff: <standard input>:849: warning [p 11, 8.7i]: can't break line
! troff: <standard input>:852: warning [p 11, 9.2i]: can't break line
! troff: <standard input>:855: warning [p 11, 9.7i]: can't break line
! troff: <standard input>:861: warning [p 11, 10.5i]: can't break line
! troff: <standard input>:864: warning [p 11, 10.8i]: can't break line
! troff: <standard input>:867: warning [p 11, 11.3i]: can't break line
! troff: <standard input>:870: warning [p 11, 11.8i]: can't break line
! troff: <standard input>:873: warning [p 11, 12.3i]: can't break line
! troff: <standard input>:876: warning [p 12, 0.2i]: can't break line
! troff: <standard input>:879: warning [p 12, 0.7i]: can't break line
! troff: <standard input>:882: warning [p 12, 1.2i]: can't break line
! troff: <standard input>:885: warning [p 12, 1.7i]: can't break line
! troff: <standard input>:891: warning [p 12, 2.7i]: can't break line
! troff: <standard input>:894: warning [p 12, 3.2i]: can't break line
! troff: <standard input>:897: warning [p 12, 3.7i]: can't break line
! troff: <standard input>:900: warning [p 12, 4.2i]: can't break line
! troff: <standard input>:903: warning [p 12, 4.7i]: can't break line
! troff: <standard input>:906: warning [p 12, 5.2i]: can't break line
! troff: <standard input>:912: warning [p 12, 6.2i]: can't break line
! troff: <standard input>:921: warning [p 12, 7.7i]: can't break line
! troff: <standard input>:927: warning [p 12, 8.7i]: can't break line
! troff: <standard input>:933: warning [p 12, 9.7i]: can't break line
! troff: <standard input>:939: warning [p 12, 10.7i]: can't break line
! troff: <standard input>:942: warning [p 12, 11.2i]: can't break line
! troff: <standard input>:945: warning [p 12, 11.7i]: can't break line
! troff: <standard input>:948: warning [p 12, 12.2i]: can't break line
! troff: <standard input>:957: warning [p 13, 0.7i]: can't break line
! troff: <standard input>:960: warning [p 13, 1.0i]: can't break line
! troff: <standard input>:963: warning [p 13, 1.5i]: can't break line
! troff: <standard input>:966: warning [p 13, 2.0i]: can't break line
! troff: <standard input>:969: warning [p 13, 2.5i]: can't break line
! troff: <standard input>:972: warning [p 13, 3.0i]: can't break line
! troff: <standard input>:975: warning [p 13, 3.5i]: can't break line
! troff: <standard input>:978: warning [p 13, 4.0i]: can't break line
! troff: <standard input>:981: warning [p 13, 4.5i]: can't break line
! troff: <standard input>:984: warning [p 13, 5.0i]: can't break line
! troff: <standard input>:987: warning [p 13, 5.5i]: can't break line
! troff: <standard input>:993: warning [p 13, 6.5i]: can't break line
! troff: <standard input>:996: warning [p 13, 7.0i]: can't break line
! troff: <standard input>:999: warning [p 13, 7.5i]: can't break line
! troff: <standard input>:1005: warning [p 13, 8.5i]: can't break line
! troff: <standard input>:1008: warning [p 13, 9.0i]: can't break line
! troff: <standard input>:1011: warning [p 13, 9.5i]: can't break line
! troff: <standard input>:1014: warning [p 13, 10.0i]: can't break line
! troff: <standard input>:1017: warning [p 13, 10.5i]: can't break line
! troff: <standard input>:1023: warning [p 13, 11.5i]: can't break line
! troff: <standard input>:1026: warning [p 13, 12.0i]: can't break line
! troff: <standard input>:1029: warning [p 13, 12.5i]: can't break line
! troff: <standard input>:1038: warning [p 14, 0.7i]: can't break line
! troff: <standard input>:1044: warning [p 14, 1.7i]: can't break line
! troff: <standard input>:1047: warning [p 14, 2.2i]: can't break line
! troff: <standard input>:1050: warning [p 14, 2.7i]: can't break line
! troff: <standard input>:1053: warning [p 14, 3.2i]: can't break line
! troff: <standard input>:1056: warning [p 14, 3.7i]: can't break line
! troff: <standard input>:1062: warning [p 14, 4.7i]: can't break line
! troff: <standard input>:1065: warning [p 14, 5.2i]: can't break line
! troff: <standard input>:1068: warning [p 14, 5.7i]: can't break line
! troff: <standard input>:1077: warning [p 14, 7.0i]: can't break line
! troff: <standard input>:1080: warning [p 14, 7.5i]: can't break line
! troff: <standard input>:1086: warning [p 14, 8.5i]: can't break line
! troff: <standard input>:1089: warning [p 14, 9.0i]: can't break line
! troff: <standard input>:1092: warning [p 14, 9.5i]: can't break line
! troff: <standard input>:1095: warning [p 14, 10.0i]: can't break line
! troff: <standard input>:1098: warning [p 14, 10.5i]: can't break line
! troff: <standard input>:1101: warning [p 14, 11.0i]: can't break line
! troff: <standard input>:1104: warning [p 14, 11.5i]: can't break line
! troff: <standard input>:1107: warning [p 14, 12.0i]: can't break line
! troff: <standard input>:1110: warning [p 14, 12.5i]: can't break line
! troff: <standard input>:1113: warning [p 14, 13.0i]: can't break line
! troff: <standard input>:1116: warning [p 15, 0.2i]: can't break line
! troff: <standard input>:1119: warning [p 15, 0.7i]: can't break line
! troff: <standard input>:1122: warning [p 15, 1.2i]: can't break line
! troff: <standard input>:1125: warning [p 15, 1.7i]: can't break line
! troff: <standard input>:1128: warning [p 15, 2.2i]: can't break line
! troff: <standard input>:1131: warning [p 15, 2.7i]: can't break line
! troff: <standard input>:1134: warning [p 15, 3.2i]: can't break line
! troff: <standard input>:1137: warning [p 15, 3.7i]: can't break line
! troff: <standard input>:1140: warning [p 15, 4.2i]: can't break line
! troff: <standard input>:1143: warning [p 15, 4.7i]: can't break line
! troff: <standard input>:1146: warning [p 15, 5.2i]: can't break line
! troff: <standard input>:1149: warning [p 15, 5.7i]: can't break line
! troff: <standard input>:1152: warning [p 15, 6.2i]: can't break line
! troff: <standard input>:1155: warning [p 15, 6.7i]: can't break line
! troff: <standard input>:1161: warning [p 15, 7.7i]: can't break line
! troff: <standard input>:1164: warning [p 15, 8.2i]: can't break line
! troff: <standard input>:1167: warning [p 15, 8.7i]: can't break line
! troff: <standard input>:1170: warning [p 15, 9.2i]: can't break line
! troff: <standard input>:1173: warning [p 15, 9.7i]: can't break line
! troff: <standard input>:1176: warning [p 15, 10.2i]: can't break line
! troff: <standard input>:1179: warning [p 15, 10.7i]: can't break line
! troff: <standard input>:1182: warning [p 15, 11.2i]: can't break line
! troff: <standard input>:1185: warning [p 15, 11.7i]: can't break line
! troff: <standard input>:1188: warning [p 15, 12.2i]: can't break line
! troff: <standard input>:1191: warning [p 15, 12.7i]: can't break line
! troff: <standard input>:1194: warning [p 15, 13.2i]: can't break line
! troff: <standard input>:1197: warning [p 16, 0.2i]: can't break line
! troff: <standard input>:1200: warning [p 16, 0.7i]: can't break line
! troff: <standard input>:1203: warning [p 16, 1.2i]: can't break line
! troff: <standard input>:1206: warning [p 16, 1.7i]: can't break line
! troff: <standard input>:1209: warning [p 16, 2.2i]: can't break line
! troff: <standard input>:1212: warning [p 16, 2.7i]: can't break line
! troff: <standard input>:1219: warning [p 16, 3.5i]: can't break line
! troff: <standard input>:1222: warning [p 16, 3.8i]: can't break line
! troff: <standard input>:1231: warning [p 16, 5.3i]: can't break line
! troff: <standard input>:1234: warning [p 16, 5.8i]: can't break line
! troff: <standard input>:1237: warning [p 16, 6.3i]: can't break line
! troff: <standard input>:1240: warning [p 16, 6.8i]: can't break line
! troff: <standard input>:1246: warning [p 16, 7.7i]: can't break line
! troff: <standard input>:1249: warning [p 16, 8.2i]: can't break line
! troff: <standard input>:1252: warning [p 16, 8.7i]: can't break line
! troff: <standard input>:1255: warning [p 16, 9.2i]: can't break line
! troff: <standard input>:1264: warning [p 16, 10.7i]: can't break line
! troff: <standard input>:1267: warning [p 16, 11.0i]: can't break line
! troff: <standard input>:1270: warning [p 16, 11.5i]: can't break line
! troff: <standard input>:1273: warning [p 16, 12.0i]: can't break line
! troff: <standard input>:1276: warning [p 16, 12.5i]: can't break line
! troff: <standard input>:1279: warning [p 16, 13.0i]: can't break line
! troff: <standard input>:1282: warning [p 16, 13.5i]: can't break line
! troff: <standard input>:1285: warning [p 17, 0.2i]: can't break line
! troff: <standard input>:1288: warning [p 17, 0.7i]: can't break line
! troff: <standard input>:1291: warning [p 17, 1.2i]: can't break line
! troff: <standard input>:1294: warning [p 17, 1.7i]: can't break line
! troff: <standard input>:1300: warning [p 17, 2.7i]: can't break line
! troff: <standard input>:1303: warning [p 17, 3.2i]: can't break line
! troff: <standard input>:1306: warning [p 17, 3.7i]: can't break line
! troff: <standard input>:1312: warning [p 17, 4.7i]: can't break line
! troff: <standard input>:1315: warning [p 17, 5.2i]: can't break line
! troff: <standard input>:1318: warning [p 17, 5.7i]: can't break line
! troff: <standard input>:1321: warning [p 17, 6.2i]: can't break line
! troff: <standard input>:1324: warning [p 17, 6.7i]: can't break line
! troff: <standard input>:1330: warning [p 17, 7.7i]: can't break line
! troff: <standard input>:1333: warning [p 17, 8.2i]: can't break line
! troff: <standard input>:1336: warning [p 17, 8.7i]: can't break line
! troff: <standard input>:1345: warning [p 17, 10.2i]: can't break line
! troff: <standard input>:1351: warning [p 17, 11.2i]: can't break line
! troff: <standard input>:1354: warning [p 17, 11.7i]: can't break line
! troff: <standard input>:1357: warning [p 17, 12.2i]: can't break line
! troff: <standard input>:1360: warning [p 17, 12.7i]: can't break line
! troff: <standard input>:1363: warning [p 17, 13.2i]: can't break line
! troff: <standard input>:1369: warning [p 18, 0.2i]: can't break line
! troff: <standard input>:1372: warning [p 18, 0.7i]: can't break line
! troff: <standard input>:1375: warning [p 18, 1.2i]: can't break line
! troff: <standard input>:1384: warning [p 18, 2.5i]: can't break line
! troff: <standard input>:1387: warning [p 18, 3.0i]: can't break line
! troff: <standard input>:1393: warning [p 18, 4.0i]: can't break line
! troff: <standard input>:1396: warning [p 18, 4.5i]: can't break line
! troff: <standard input>:1399: warning [p 18, 5.0i]: can't break line
! troff: <standard input>:1402: warning [p 18, 5.5i]: can't break line
! troff: <standard input>:1405: warning [p 18, 6.0i]: can't break line
! troff: <standard input>:1408: warning [p 18, 6.5i]: can't break line
! troff: <standard input>:1411: warning [p 18, 7.0i]: can't break line
! troff: <standard input>:1414: warning [p 18, 7.5i]: can't break line
! troff: <standard input>:1417: warning [p 18, 8.0i]: can't break line
! troff: <standard input>:1420: warning [p 18, 8.5i]: can't break line
! troff: <standard input>:1423: warning [p 18, 9.0i]: can't break line
! troff: <standard input>:1426: warning [p 18, 9.5i]: can't break line
! troff: <standard input>:1429: warning [p 18, 10.0i]: can't break line
! troff: <standard input>:1432: warning [p 18, 10.5i]: can't break line
! troff: <standard input>:1435: warning [p 18, 11.0i]: can't break line
! troff: <standard input>:1438: warning [p 18, 11.5i]: can't break line
! troff: <standard input>:1441: warning [p 18, 12.0i]: can't break line
! troff: <standard input>:1444: warning [p 18, 12.5i]: can't break line
! troff: <standard input>:1447: warning [p 18, 13.0i]: can't break line
! troff: <standard input>:1450: warning [p 18, 13.5i]: can't break line
! troff: <standard input>:1453: warning [p 18, 14.0i]: can't break line
! troff: <standard input>:1456: warning [p 19, 0.2i]: can't break line
! troff: <standard input>:1459: warning [p 19, 0.7i]: can't break line
! troff: <standard input>:1462: warning [p 19, 1.2i]: can't break line
! troff: <standard input>:1468: warning [p 19, 2.2i]: can't break line
! troff: <standard input>:1471: warning [p 19, 2.7i]: can't break line
! troff: <standard input>:1474: warning [p 19, 3.2i]: can't break line
! troff: <standard input>:1477: warning [p 19, 3.7i]: can't break line
! troff: <standard input>:1480: warning [p 19, 4.2i]: can't break line
! troff: <standard input>:1483: warning [p 19, 4.7i]: can't break line
! troff: <standard input>:1486: warning [p 19, 5.2i]: can't break line
! troff: <standard input>:1489: warning [p 19, 5.7i]: can't break line
! troff: <standard input>:1492: warning [p 19, 6.2i]: can't break line
! troff: <standard input>:1495: warning [p 19, 6.7i]: can't break line
! troff: <standard input>:1498: warning [p 19, 7.2i]: can't break line
! troff: <standard input>:1501: warning [p 19, 7.7i]: can't break line
! troff: <standard input>:1504: warning [p 19, 8.2i]: can't break line
! troff: <standard input>:1507: warning [p 19, 8.7i]: can't break line
! troff: <standard input>:1510: warning [p 19, 9.2i]: can't break line
! troff: <standard input>:1513: warning [p 19, 9.7i]: can't break line
! troff: <standard input>:1516: warning [p 19, 10.2i]: can't break line
! troff: <standard input>:1519: warning [p 19, 10.7i]: can't break line
! troff: <standard input>:1526: warning [p 19, 11.5i]: can't break line
! troff: <standard input>:1532: warning [p 19, 12.2i]: can't break line
! troff: <standard input>:1538: warning [p 19, 13.2i]: can't break line
! troff: <standard input>:1547: warning [p 20, 0.2i]: can't break line
! troff: <standard input>:1550: warning [p 20, 0.7i]: can't break line
! troff: <standard input>:1553: warning [p 20, 1.2i]: can't break line
! troff: <standard input>:1559: warning [p 20, 2.2i]: can't break line
! troff: <standard input>:1562: warning [p 20, 2.7i]: can't break line
! troff: <standard input>:1565: warning [p 20, 3.2i]: can't break line
! troff: <standard input>:1568: warning [p 20, 3.7i]: can't break line
! troff: <standard input>:1571: warning [p 20, 4.2i]: can't break line
! troff: <standard input>:1580: warning [p 20, 5.5i]: can't break line
! troff: <standard input>:1586: warning [p 20, 6.5i]: can't break line
! troff: <standard input>:1589: warning [p 20, 7.0i]: can't break line
! troff: <standard input>:1592: warning [p 20, 7.5i]: can't break line
! troff: <standard input>:1595: warning [p 20, 8.0i]: can't break line
! troff: <standard input>:1598: warning [p 20, 8.5i]: can't break line
! troff: <standard input>:1601: warning [p 20, 9.0i]: can't break line
! troff: <standard input>:1604: warning [p 20, 9.5i]: can't break line
! troff: <standard input>:1607: warning [p 20, 10.0i]: can't break line
! troff: <standard input>:1610: warning [p 20, 10.5i]: can't break line
! troff: <standard input>:1613: warning [p 20, 11.0i]: can't break line
! troff: <standard input>:1616: warning [p 20, 11.5i]: can't break line
! troff: <standard input>:1619: warning [p 20, 12.0i]: can't break line
! troff: <standard input>:1622: warning [p 20, 12.5i]: can't break line
! troff: <standard input>:1625: warning [p 20, 13.0i]: can't break line
! troff: <standard input>:1628: warning [p 20, 13.5i]: can't break line
! troff: <standard input>:1631: warning [p 20, 14.0i]: can't break line
! troff: <standard input>:1634: warning [p 20, 14.5i]: can't break line
! troff: <standard input>:1637: warning [p 21, 0.2i]: can't break line
! troff: <standard input>:1640: warning [p 21, 0.7i]: can't break line
! troff: <standard input>:1647: warning [p 21, 1.5i]: can't break line
! troff: <standard input>:1653: warning [p 21, 2.3i]: can't break line
! troff: <standard input>:1656: warning [p 21, 2.8i]: can't break line
! troff: <standard input>:1659: warning [p 21, 3.2i]: can't break line
! troff: <standard input>:1662: warning [p 21, 3.7i]: can't break line
! troff: <standard input>:1665: warning [p 21, 4.2i]: can't break line
! troff: <standard input>:1668: warning [p 21, 4.7i]: can't break line
! troff: <standard input>:1674: warning [p 21, 5.7i]: can't break line
! troff: <standard input>:1680: warning [p 21, 6.7i]: can't break line
! troff: <standard input>:1686: warning [p 21, 7.5i]: can't break line
! troff: <standard input>:1695: warning [p 21, 8.8i]: can't break line
! troff: <standard input>:1701: warning [p 21, 9.8i]: can't break line
! troff: <standard input>:1704: warning [p 21, 10.3i]: can't break line
! troff: <standard input>:1707: warning [p 21, 10.8i]: can't break line
! troff: <standard input>:1710: warning [p 21, 11.3i]: can't break line
! troff: <standard input>:1713: warning [p 21, 11.8i]: can't break line
! troff: <standard input>:1716: warning [p 21, 12.3i]: can't break line
! troff: <standard input>:1719: warning [p 21, 12.8i]: can't break line
! troff: <standard input>:1722: warning [p 21, 13.3i]: can't break line
! troff: <standard input>:1725: warning [p 21, 13.8i]: can't break line
! troff: <standard input>:1728: warning [p 21, 14.3i]: can't break line
! troff: <standard input>:1731: warning [p 21, 14.8i]: can't break line
! troff: <standard input>:1734: warning [p 22, 0.2i]: can't break line
! troff: <standard input>:1737: warning [p 22, 0.7i]: can't break line
! troff: <standard input>:1740: warning [p 22, 1.2i]: can't break line
! troff: <standard input>:1743: warning [p 22, 1.7i]: can't break line
! troff: <standard input>:1746: warning [p 22, 2.2i]: can't break line
! troff: <standard input>:1749: warning [p 22, 2.7i]: can't break line
! troff: <standard input>:1752: warning [p 22, 3.2i]: can't break line
! troff: <standard input>:1755: warning [p 22, 3.7i]: can't break line
! troff: <standard input>:1763: warning [p 22, 4.5i]: can't break line
! troff: <standard input>:1769: warning [p 22, 5.3i]: can't break line
! troff: <standard input>:1778: warning [p 22, 6.8i]: can't break line
! troff: <standard input>:1781: warning [p 22, 7.3i]: can't break line
! troff: <standard input>:1784: warning [p 22, 7.8i]: can't break line
! troff: <standard input>:1790: warning [p 22, 8.8i]: can't break line
! troff: <standard input>:1799: warning [p 22, 10.2i]: can't break line
! troff: <standard input>:1808: warning [p 22, 11.5i]: can't break line
! troff: <standard input>:1814: warning [p 22, 12.5i]: can't break line
! troff: <standard input>:1817: warning [p 22, 13.0i]: can't break line
! troff: <standard input>:1820: warning [p 22, 13.5i]: can't break line
! troff: <standard input>:1823: warning [p 22, 14.0i]: can't break line
! troff: <standard input>:1826: warning [p 22, 14.5i]: can't break line
! troff: <standard input>:1829: warning [p 22, 15.0i]: can't break line
! troff: <standard input>:1832: warning [p 23, 0.2i]: can't break line
! troff: <standard input>:1835: warning [p 23, 0.7i]: can't break line
! troff: <standard input>:1838: warning [p 23, 1.2i]: can't break line
! troff: <standard input>:1841: warning [p 23, 1.7i]: can't break line
! troff: <standard input>:1844: warning [p 23, 2.2i]: can't break line
! troff: <standard input>:1847: warning [p 23, 2.7i]: can't break line
! troff: <standard input>:1850: warning [p 23, 3.2i]: can't break line
! troff: <standard input>:1853: warning [p 23, 3.7i]: can't break line
! troff: <standard input>:1856: warning [p 23, 4.2i]: can't break line
! troff: <standard input>:1859: warning [p 23, 4.7i]: can't break line
! troff: <standard input>:1862: warning [p 23, 5.2i]: can't break line
! troff: <standard input>:1865: warning [p 23, 5.7i]: can't break line
! troff: <standard input>:1868: warning [p 23, 6.2i]: can't break line
! troff: <standard input>:1874: warning [p 23, 7.0i]: can't break line
! troff: <standard input>:1880: warning [p 23, 7.8i]: can't break line
! troff: <standard input>:1883: warning [p 23, 8.3i]: can't break line
! troff: <standard input>:1886: warning [p 23, 8.8i]: can't break line
! troff: <standard input>:1889: warning [p 23, 9.3i]: can't break line
! troff: <standard input>:1892: warning [p 23, 9.8i]: can't break line
! troff: <standard input>:1895: warning [p 23, 10.3i]: can't break line
! troff: <standard input>:1898: warning [p 23, 10.8i]: can't break line
! troff: <standard input>:1918: warning [p 23, 13.7i]: can't break line
! troff: <standard input>:1934: warning [p 24, 0.0i]: can't break line
! troff: <standard input>:1940: warning [p 24, 0.7i]: can't break line
! troff: <standard input>:1946: warning [p 24, 1.7i]: can't break line
! troff: <standard input>:1949: warning [p 24, 2.2i]: can't break line
! troff: <standard input>:1952: warning [p 24, 2.7i]: can't break line
! troff: <standard input>:1955: warning [p 24, 3.2i]: can't break line
! troff: <standard input>:1958: warning [p 24, 3.7i]: can't break line
! troff: <standard input>:1961: warning [p 24, 4.2i]: can't break line
! troff: <standard input>:1964: warning [p 24, 4.7i]: can't break line
! troff: <standard input>:1970: warning [p 24, 5.7i]: can't break line
! troff: <standard input>:1973: warning [p 24, 6.2i]: can't break line
! troff: <standard input>:1979: warning [p 24, 7.2i]: can't break line
! troff: <standard input>:1985: warning [p 24, 8.2i]: can't break line
! troff: <standard input>:1988: warning [p 24, 8.7i]: can't break line
! troff: <standard input>:1991: warning [p 24, 9.2i]: can't break line
! troff: <standard input>:1994: warning [p 24, 9.7i]: can't break line
! troff: <standard input>:1997: warning [p 24, 10.2i]: can't break line
! troff: <standard input>:2000: warning [p 24, 10.7i]: can't break line
! troff: <standard input>:2003: warning [p 24, 11.2i]: can't break line
! troff: <standard input>:2006: warning [p 24, 11.7i]: can't break line
! troff: <standard input>:2009: warning [p 24, 12.2i]: can't break line
! troff: <standard input>:2012: warning [p 24, 12.7i]: can't break line
! troff: <standard input>:2015: warning [p 24, 13.2i]: can't break line
! troff: <standard input>:2018: warning [p 24, 13.7i]: can't break line
! troff: <standard input>:2021: warning [p 24, 14.2i]: can't break line
! troff: <standard input>:2024: warning [p 24, 14.7i]: can't break line
! troff: <standard input>:2027: warning [p 24, 15.2i]: can't break line
! troff: <standard input>:2030: warning [p 24, 15.7i]: can't break line
! troff: <standard input>:2033: warning [p 25, 0.2i]: can't break line
! troff: <standard input>:2036: warning [p 25, 0.7i]: can't break line
! troff: <standard input>:2039: warning [p 25, 1.2i]: can't break line
! troff: <standard input>:2045: warning [p 25, 2.0i]: can't break line
! troff: <standard input>:2054: warning [p 25, 3.3i]: can't break line
! troff: <standard input>:2066: warning [p 25, 5.3i]: can't break line
! troff: <standard input>:2069: warning [p 25, 5.7i]: can't break line
! troff: <standard input>:2075: warning [p 25, 6.5i]: can't break line
! troff: <standard input>:2082: warning [p 25, 7.3i]: can't break line
! troff: <standard input>:2085: warning [p 25, 7.8i]: can't break line
! troff: <standard input>:2091: warning [p 25, 8.8i]: can't break line
! troff: <standard input>:2097: warning [p 25, 9.8i]: can't break line
! troff: <standard input>:2111: warning [p 25, 12.0i]: can't break line
! troff: <standard input>:2114: warning [p 25, 12.5i]: can't break line
! troff: <standard input>:2117: warning [p 25, 13.0i]: can't break line
! troff: <standard input>:2138: warning [p 26, 0.2i]: can't break line
! troff: <standard input>:2141: warning [p 26, 0.7i]: can't break line
! troff: <standard input>:2147: warning [p 26, 1.5i]: can't break line
! troff: <standard input>:2150: warning [p 26, 2.0i]: can't break line
! troff: <standard input>:2153: warning [p 26, 2.5i]: can't break line
! troff: <standard input>:2162: warning [p 26, 4.0i]: can't break line
! troff: <standard input>:2165: warning [p 26, 4.3i]: can't break line
! troff: <standard input>:2168: warning [p 26, 4.8i]: can't break line
! troff: <standard input>:2171: warning [p 26, 5.3i]: can't break line
! troff: <standard input>:2174: warning [p 26, 5.8i]: can't break line
! troff: <standard input>:2177: warning [p 26, 6.3i]: can't break line
! troff: <standard input>:2180: warning [p 26, 6.8i]: can't break line
! troff: <standard input>:2183: warning [p 26, 7.3i]: can't break line
! troff: <standard input>:2186: warning [p 26, 7.8i]: can't break line
! troff: <standard input>:2189: warning [p 26, 8.3i]: can't break line
! troff: <standard input>:2192: warning [p 26, 8.8i]: can't break line
! troff: <standard input>:2195: warning [p 26, 9.3i]: can't break line
! troff: <standard input>:2198: warning [p 26, 9.8i]: can't break line
! troff: <standard input>:2201: warning [p 26, 10.3i]: can't break line
! troff: <standard input>:2204: warning [p 26, 10.8i]: can't break line
! troff: <standard input>:2207: warning [p 26, 11.3i]: can't break line
! troff: <standard input>:2210: warning [p 26, 11.8i]: can't break line
! troff: <standard input>:2217: warning [p 26, 12.7i]: can't break line
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
