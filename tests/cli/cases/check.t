# Data-quality and leakage checks. Findings do not change the exit status.
$ lapse import events.csv -o events.lapse >/dev/null; lapse check events.lapse --now 2026-11-15T12:00:00Z
| data     events.lapse: 96 events in 12 sequences, of 4 event types
| split    by sequence: 82 train, 7 valid, 7 test
|
| ok       tied-times            0 of 96 events
| ok       future-times          0 of 96 events
| ok       duplicates            0 of 96 events
| note     repeats               17 of 96 events (17.71 %)
|          Events with the event type of the event before them in their sequence.
|          If a repeat carries no information (a page reload), import with
|          --deduplicate consecutive: repeats are easy to predict and raise every
|          score.
| ok       single-events         0 of 12 sequences
| ok       untrained-event-types 0 of 4 event_types
| ok       divided-sequences     0 of 12 sequences
| ok       past-targets          0 of 14 valid and test events
| ok       tied-targets          0 of 6 test targets
| note     later-training        7 of 7 test events (100.00 %)
|          Test events earlier than the newest training event, at
|          2026-01-05T13:18:00Z.
|          Training and test overlap in time; --split-by time gives scores as in
|          production.
| ok       leaking-fields        0 of 0 fields
|
| 0 warnings, 2 notes
$ lapse check events.lapse --split-by leave-one-out --now 2026-01-05T00:00:00Z; echo "exit $?"
| data     events.lapse: 96 events in 12 sequences, of 4 event types
| split    by leave-one-out: 72 train, 12 valid, 12 test
|
| ok       tied-times            0 of 96 events
| warning  future-times          5 of 96 events (5.21 %)
|          Events later than 2026-01-05T00:00:00Z; the latest is at
|          2026-01-05T13:18:00Z.
|          Check the time unit and the clocks of the source, and remove such rows.
| ok       duplicates            0 of 96 events
| note     repeats               17 of 96 events (17.71 %)
|          Events with the event type of the event before them in their sequence.
|          If a repeat carries no information (a page reload), import with
|          --deduplicate consecutive: repeats are easy to predict and raise every
|          score.
| ok       single-events         0 of 12 sequences
| ok       untrained-event-types 0 of 4 event_types
| note     divided-sequences     12 of 12 sequences (100.00 %)
|          Sequences with events in several splits, by design of --split-by
|          leave-one-out.
|          If the model will serve new sequences, keep each sequence in one split:
|          --split-by sequence or time.
| ok       past-targets          0 of 24 valid and test events
| ok       tied-targets          0 of 12 test targets
| note     later-training        10 of 12 test events (83.33 %)
|          Test events earlier than the newest training event, at
|          2026-01-05T06:24:00Z.
|          Training and test overlap in time; --split-by time gives scores as in
|          production.
| ok       leaking-fields        0 of 0 fields
|
| 1 warning, 3 notes
| exit 0
$ lapse import repeats.csv -o repeats.lapse >/dev/null; lapse check repeats.lapse --split-by leave-one-out --now 1767225600 --json
| {
|   "data": "repeats.lapse",
|   "split_by": "leave-one-out",
|   "seed": 1,
|   "now": 1767225600,
|   "train_events": 9,
|   "valid_events": 1,
|   "test_events": 1,
|   "findings": [
|     {
|       "name": "tied-times",
|       "severity": "warning",
|       "count": 5,
|       "total": 11,
|       "fraction": 0.454545,
|       "unit": "events",
|       "text": "Events with the same timestamp as another event of their sequence; their order: sequence by first appearance, then time; ties keep the order of the source.",
|       "advice": "If the order within one timestamp matters, import finer timestamps, or rows in the right order."
|     },
|     {
|       "name": "future-times",
|       "severity": "warning",
|       "count": 7,
|       "total": 11,
|       "fraction": 0.636364,
|       "unit": "events",
|       "text": "Events later than 2026-01-01T00:00:00Z; the latest is at 2026-01-01T03:02:00Z.",
|       "advice": "Check the time unit and the clocks of the source, and remove such rows."
|     },
|     {
|       "name": "duplicates",
|       "severity": "warning",
|       "count": 1,
|       "total": 11,
|       "fraction": 0.0909091,
|       "unit": "events",
|       "text": "Events with the same sequence, timestamp and event type as an earlier event.",
|       "advice": "If they record one event twice, import with --deduplicate exact."
|     },
|     {
|       "name": "repeats",
|       "severity": "note",
|       "count": 1,
|       "total": 11,
|       "fraction": 0.0909091,
|       "unit": "events",
|       "text": "Events with the event type of the event before them in their sequence.",
|       "advice": "If a repeat carries no information (a page reload), import with --deduplicate consecutive: repeats are easy to predict and raise every score."
|     },
|     {
|       "name": "single-events",
|       "severity": "ok",
|       "count": 0,
|       "total": 3,
|       "fraction": 0,
|       "unit": "sequences",
|       "text": "Every sequence has several events.",
|       "advice": ""
|     },
|     {
|       "name": "untrained-event-types",
|       "severity": "ok",
|       "count": 0,
|       "total": 5,
|       "fraction": 0,
|       "unit": "event_types",
|       "text": "Every event type occurs in training.",
|       "advice": ""
|     },
|     {
|       "name": "divided-sequences",
|       "severity": "note",
|       "count": 1,
|       "total": 3,
|       "fraction": 0.333333,
|       "unit": "sequences",
|       "text": "Sequences with events in several splits, by design of --split-by leave-one-out.",
|       "advice": "If the model will serve new sequences, keep each sequence in one split: --split-by sequence or time."
|     },
|     {
|       "name": "past-targets",
|       "severity": "ok",
|       "count": 0,
|       "total": 2,
|       "fraction": 0,
|       "unit": "valid and test events",
|       "text": "No training event follows a valid or test event of its sequence.",
|       "advice": ""
|     },
|     {
|       "name": "tied-targets",
|       "severity": "ok",
|       "count": 0,
|       "total": 1,
|       "fraction": 0,
|       "unit": "test targets",
|       "text": "No test event has the timestamp of the event before it.",
|       "advice": ""
|     },
|     {
|       "name": "later-training",
|       "severity": "ok",
|       "count": 0,
|       "total": 1,
|       "fraction": 0,
|       "unit": "test events",
|       "text": "No test event is earlier than the newest training event, at 2026-01-01T03:00:00Z.",
|       "advice": ""
|     },
|     {
|       "name": "leaking-fields",
|       "severity": "ok",
|       "count": 0,
|       "total": 0,
|       "fraction": 0,
|       "unit": "fields",
|       "text": "No field predicts the next event.",
|       "advice": ""
|     }
|   ]
| }
$ lapse import repeats.csv -o sessions.lapse --session-gap 30m >/dev/null; lapse check sessions.lapse --split-by time | grep -A5 divided
| note     divided-sequences     1 of 3 sequences of the source (33.33 %)
|          Sequences of the source whose sessions are in several splits.
|          If the model will serve new sequences, keep each sequence in one split:
|          --split-by sequence or time.
| ok       past-targets          0 of 5 valid and test events
| ok       tied-targets          0 of 2 test targets

# A field that equals the next event is leakage.
$ { echo user,time,event,next; tail -n +2 events.csv | sort -t, -k1,1 -k2,2n | awk -F, 'NR > 1 {print line "," $3} {line = $0} \
  END {print line ",view"}'; } >leak.csv
$ lapse import leak.csv -o leak.lapse --field next >/dev/null; lapse check leak.lapse | tail -8
|          Training and test overlap in time; --split-by time gives scores as in
|          production.
| warning  leaking-fields        1 of 1 fields (100.00 %)
|          The field 'next' predicts the event type of the next event in 100.0 %
|          of valid and test events; the event type of the event itself in 33.3 %.
|          If a field is known only after the next event, do not import it.
|
| 1 warning, 2 notes

# Errors.
$ lapse check
! lapse: check needs DATA: dataset file from `lapse import`, or events in text, plain or gzip, one per row; - is standard input
! lapse: see `lapse check --help`
= 2
$ lapse check nothing.lapse
! lapse: nothing.lapse: cannot open: No such file or directory
= 1
$ lapse check events.lapse --split-by coin
! lapse: --split-by takes one of column, sequence, leave-one-out, time, session, not 'coin'
! lapse: see `lapse check --help`
= 2
$ lapse check events.lapse --split-by column
! lapse: the dataset has no split column: import it with --split-column COLUMN, or choose another --split-by rule
= 2
$ lapse check events.lapse --now soon
! lapse: --now: 'soon' is not a time: give unix seconds, or ISO 8601 such as 2026-11-15T12:00:00Z
! lapse: see `lapse check --help`
= 2
$ head -c 200 events.lapse >short.lapse; lapse check short.lapse
! lapse: short.lapse: the file is truncated: it has 200 of 3264 bytes
= 1
$ head -2 events.csv | lapse import - -o one.lapse >/dev/null; lapse check one.lapse
! lapse: 1 sequence cannot be split into train, valid and test: at least 3 are required, or a split column in the source
= 2
