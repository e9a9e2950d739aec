// Package server is the Kafka door of a node: the listener, the connection loops, and one file for each API key.
//
// Knows: the order of answers on a connection, version rules, request and response layouts, which error becomes which
// protocol code, fetch sessions, and which address to tell a client. Does not know: how records are stored or replicated,
// how a change of metadata is decided. It asks Replicas and Controller, and reads the published Image.
//
// The roads. Produce: conn.readLoop (conn.go), Server.Do (dispatch.go), handleProduce (produce.go), Replicas.Append; the answer is parked
// and writer.loop (writer.go) sends it. Fetch: readLoop, Do, handleFetch (fetch.go), Replicas.Read, and Replicas.Park when there is not
// enough to send. An answer that is ready at once is sent by the reader itself. TestRoads_ProduceAndFetch walks both, function by function.
//
// Order on a connection: answers leave in request order. Only Produce is pipelined behind Produce; a request of any other key
// starts when all earlier ones have been answered. The reader reads one frame ahead, which also notices a peer that is gone:
// its parked work is dropped. Nothing is begun behind an answer that ends the connection.
//
// A request's bytes go into another request's buffer only when its handler has ended with them: what is dropped, or answered at its deadline, keeps them
// (exchange.keep), because a login, or a coordinator whose inbox the event lies in, still reads.
//
// Invariants: I1 (an acks=all answer is what Replicas.Append says, never earlier), I6 (Fetch asks for committed records only),
// I13 (leaders and epochs come from one Image; unknown is answered as unknown), I14 (frames, responses, queues, sessions
// and connections are bounded by limits.go; lengths are checked before allocation), I15 (every Call carries a principal).
//
// Concurrency: two goroutines for each connection (reader and writer), one for each admin request in progress (at most one per
// connection), one accept loop for each listener. The lock of a connection and the locks of sessions, budget and id block are leaf
// locks: none is held across I/O or while taking another.
//
// Files: server.go (Config, New), accept.go (Serve), conn.go (reader), frame.go (bytes to requests), shelf.go (their buffers), writer.go, budget.go, peerlog.go,
// dispatch.go (Do, Await), handlers.go (the table), call.go (Call, Reply, Pending), errors.go (the one error table), settings.go,
// target.go (topics and leaders of a request), advertise.go, cap.go (older releases), admin.go (pending administrative requests), session.go and sessioncache.go
// (fetch sessions), groups.go (the seam to the group coordinators and their pending answers), fetchanswer.go, inflate.go (batches being decompressed), limits.go, and a file named for each API key.
package server
