// Package rest serves HTTP: today the health and metrics routes that operators and orchestrators need.
//
// Knows: routes, status codes, problem documents (RFC 9457). Does not know: when a node is ready or what a number means; it is
// given functions that answer.
//
// Invariants: I14 (header size, header time, idle time and body size are bounded; see limits.go).
//
// Concurrency: handlers run on net/http's goroutines and hold no state.
//
// Files: rest.go (routes), limits.go.
package rest
