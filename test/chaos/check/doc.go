// Package check judges what clients of a cluster saw: were the promises kept.
//
// Knows: a History, which is what producers, readers and watchers were told and when, and the final content of the logs; and the
// properties of the reliability page that can be read off it (P1-P10, P12, P13, P18-P19, P30). Does not know: how the history came to
// be, or anything inside a broker.
//
// Outcomes: ok means that the cluster said so; failed means that it said no, so nothing may have happened; unknown means that no
// answer came, so both are allowed. Times come from one monotonic clock; an operation takes effect somewhere between its Begin and
// its End.
//
// The judge itself is tested first: hand-made histories, bad ones that must be refused for the right property and tricky good ones
// that must pass (history_test.go).
//
// Concurrency: a Recorder may be used from many goroutines; Judge reads a History that nobody changes any more.
//
// Files: history.go (what is recorded), judge.go (producers and logs), reads.go (readers, watchers), commits.go.
package check
