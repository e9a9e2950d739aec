// Package embedded runs a real Strandline broker, or a cluster of up to nine nodes, inside a Go test or program.
//
//	func TestOrders(t *testing.T) {
//		broker := embedded.Start(t, embedded.Options{Topics: []embedded.Topic{{Name: "orders", Partitions: 3}}})
//		client, err := kgo.NewClient(kgo.SeedBrokers(broker.Brokers()...))
//		...
//	}
//
// Knows: how to configure such a broker, make its topics, and end it. It is what `strandline dev` runs: real sockets on free ports of
// loopback, real files, flush policy "replicated", no minimum retention, plaintext, topics created on first use unless Options say otherwise.
// Does not know: production. For that, run the binary.
//
// Invariants: nothing is shared between brokers of one process, and no environment variable or file but the data directory is read. When
// Start or Open returns, every node accepts work and every topic of Options has leaders. After Stop no goroutine or port is left.
//
// Concurrency: the methods of a Broker may be called by any goroutine.
//
// Stability: names and meanings here change only with the major version.
//
// Files: embedded.go (options, Open, Stop), start.go (in a test), topics.go (topics before the first client), errors.go, limits.go.
package embedded
