// Package client does what Kafka clients leave to each program: a worker that commits only what was processed, and a publisher that gives
// every record an identity and never calls an unknown outcome a failure. It stands on franz-go (kgo) and works with any Kafka broker.
//
// Worker: a member of a consumer group that hands records to a function. By default (AtLeastOnce) a record is committed after the function
// returned nil, so a crash delivers again and loses nothing; AtMostOnce commits first. Partitions are worked on side by side, each in the
// order of its offsets, or with KeyConcurrency in the order of each key. A record that cannot be processed, a schema version nobody knows, or
// an offset that the broker no longer has stops its partition, with the position kept, and is reported; the other partitions go on. Setting a
// record aside instead (Quarantine) is a choice made in Options, and is acknowledged before progress passes the record.
//
// Publisher: sends a record with its identity in the header `record-id`, and sends it again, the same, until it is acknowledged or the time is
// up. A topic of Strandline with `strandline.dedup.window.ms` stores it once within that window and answers the original place. Elsewhere
// the repeats of one attempt are suppressed by the producer's sequence number, but those of another process are not.
//
// The three labels (who promises what):
//
//	at most once     Worker with AtMostOnce: a record is handed out once or never
//	at least once    Worker, by default: a record is handed out until it is processed, now and then once more
//	one effect       at least once, and the function makes the effect and remembers the record's identity in one transaction of its own store
//
// Knows: positions, attempts, identities, and what an error says about the outcome. Does not know: the meaning of records.
//
// Invariants: a position is never committed past a record that was not processed (or set aside with acknowledgement), nor below an earlier
// commit of this worker. Nothing is committed for a partition once it was given up. No position is guessed: out of range stops. An error says
// OutcomeUnknown unless it is certain that the record was not stored.
//
// Concurrency: a Worker runs in the goroutine that calls Run, one more commits, and each partition has up to KeyConcurrency while it has
// records. The methods of a Publisher may be called by any goroutine.
//
// Stability: names and meanings here change only with the major version. Errors are to be told apart by type and by Retriable and
// OutcomeUnknown, not by text.
//
// Files: worker.go (options, Run), poll.go (what the brokers say), partition.go (one partition), frontier.go (what is done of it),
// process.go (one record), commit.go, rebalance.go, quarantine.go, publisher.go, outcome.go (what is known of a publish), errors.go,
// limits.go.
package client
