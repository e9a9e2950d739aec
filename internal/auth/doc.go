// Package auth knows who a client is and what it may do.
//
// Knows: SASL (PLAIN, SCRAM, OAUTHBEARER), the names in client certificates, the users of the configuration's file, and Kafka's rules of access.
// Does not know: connections, frames, which request needs which right, where credentials and ACLs are kept: it reads them from the newest Image.
//
// Invariants: I15: nobody is anybody without proof, and a proof holds only as long as what it was made with (Holds). A user who does not exist
// cannot be told from one whose password is wrong: same answers, same work (nobody). A deny wins over every allow (Decide). I14: what strangers
// can make it do or keep is bounded by limits.go: hashing, fetches from an issuer, remembered decisions.
//
// Concurrency: Authenticator, Authorizer, Grants and Tokens may be used by any number of goroutines; a Login by one at a time. Locks are leaves;
// none is held across I/O.
//
// Files: authenticator.go, login.go (one exchange), users.go (credentials and the file of users), tokens.go (OpenID Connect), certificate.go (names in
// certificates); rules.go (decisions), grant.go (which remembers them), text.go, audit.go, limits.go, errors.go.
package auth
