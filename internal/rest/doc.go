// Package rest is the HTTP door of a node: the REST API under /v1, its description, health and metrics.
//
// Knows: routes, status codes, problem documents (RFC 9457), how a JSON record becomes a record on the log and back, and which node a
// request is for. Does not know any rule: what may be done, by whom, and what came of it, the server says; each request becomes a
// request of the Kafka protocol that server.Do carries out here, or server.Ask on another node.
//
// Invariants: I14 (connections, headers, bodies of one request and of all, records, waits and pages are bounded; see limits.go), I15
// (every request has a principal: of the certificate, of Basic or Bearer credentials, or ANONYMOUS where nobody must prove anything).
// What is known of a publish is told, never guessed: outcome is none or unknown (R25).
//
// Concurrency: handlers run on net/http's goroutines; a publish for several leaders has one more for each. The door's own state is
// counters and the proofs of identity that were judged a moment ago.
//
// Files: rest.go (the server), guard.go (what stands before every route), identify.go (who asks), ask.go (how the broker is asked), api.go
// (routes and their description), problem.go (the error table), topics.go, topicchange.go, topiclife.go (deletion and restoration), groups.go
// (members and commits), groupview.go, grouplist.go, groupseek.go, draft.go (bodies of publishes), publish.go, fetch.go, encode.go (records as JSON),
// cluster.go (and nodes), acls.go, users.go, audit.go, limits.go.
package rest
