// Package certs holds one TLS identity that is read from PEM files and may be replaced while it is in use.
//
// Knows: the files of an identity (certificate with its chain, key, CA), how to make them, whether they fit together and chain to the CA now, when the
// certificate ends, and when the files have changed.
//
// Does not know: who may speak with a certificate. Whoever uses an identity gives a judge, which refuses what could never work.
//
// Invariants:
//   - I15: a Source always holds a Set that was whole and judged good when it was taken. Files that are missing, half written, expired
//     or refused by the judge change nothing; they are told in one log line, and the former Set stays in use.
//   - I14: a file above fileBytesMax is not read.
//
// Concurrency: all methods may be called from any goroutine; Watch runs in one. Connections that are open keep the Set they began with.
//
// Files: certs.go (Set, Parse, Check), source.go (Source: reading, replacing, watching), authority.go (a CA: making certificates).
package certs
