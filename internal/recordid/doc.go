// Package recordid knows which records of one partition carry a record id, and for how long a repeat of an id is recognised: the rule by
// which a retried publish is stored once (I12, R22-R24).
//
// Knows: how an id is read from a batch and hashed, the table of the ids of one partition, and what becomes of a batch some of whose records
// are repeats. Does not know: the log, who leads, when a record is committed, or the wall clock; storage keeps one Table a log and moves it
// with the log's end and start.
//
// Invariants:
//   - I12: an id is forgotten when its window has passed, when its record leaves the log, or with the table, and for no other reason: a full
//     table refuses (the caller asks Room), it drops nothing that may still be repeated.
//   - Ages are differences of a clock that does not step: a step of the wall clock forgets nothing.
//   - I14: a table holds at most IDsMax ids (limits.go). Its leader takes no more, so that of those that it was ever told the newest IDsMax
//     hold all that count.
//
// Concurrency: none. The owner calls it under its own lock; Read is free of state.
//
// Files: id.go (ids of a batch), table.go (what is remembered), judge.go (repeats in a batch), limits.go.
package recordid
