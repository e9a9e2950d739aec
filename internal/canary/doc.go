// Package canary measures what a publish takes from end to end (R180): at its interval a node publishes a record of its own, acknowledged by all, and
// reads it back.
//
// Knows: the topic __strandline_canary, whose partitions take turns, so that the leaders of all are asked; what is repeated, and when a measurement has
// failed.
// Does not know: how a request is carried out. It asks the dispatcher like any other door (server.Ask), in the name of its node, so that what it
// measures has limits, quotas and the way to other nodes in it. What it leaves out is the network of clients and their waiting for a full batch.
//
// Invariants:
//   - I14: one record is on its way at a time, a failed one is given up after giveUp, and the topic forgets within the hour.
//   - Its topic is not essential (metadata.Topic.Essential): at a disk limit its records are refused like others.
//   - It stops nothing: every wait ends with the context of Run.
//
// Concurrency: Run has one goroutine.
//
// Files: canary.go (the measurement), topic.go (its topic), limits.go.
package canary
