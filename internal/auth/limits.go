package auth

import "time"

const (
	// grantsMax bounds the decisions that are remembered for one connection; above it they begin anew. Clients use a few topics.
	grantsMax = 4096
	// hashesMax bounds the passwords that are hashed at the same time: each takes a core for some milliseconds, and anybody can ask for one.
	hashesMax = 2
	// nameMax and passwordMax bound what a client sends as a name and a password, in bytes.
	nameMax     = 512
	passwordMax = 1024
	// TokenMax bounds a bearer token, in bytes; those of common issuers have 1-4 KiB.
	TokenMax = 32 << 10
	// fetchAgain is how long an issuer's address is left alone after a fetch: a flood of bad tokens must not become a flood of requests there.
	fetchAgain = 10 * time.Second
	// fetchMax bounds one fetch from the issuer, and issuerBytesMax its answer.
	fetchMax       = 5 * time.Second
	issuerBytesMax = 1 << 20
	// usersMax bounds the users of the configuration's file.
	usersMax = 1000
	// rulesMax bounds the rules that turn a certificate's name into a principal.
	rulesMax = 100
)

// DefaultIterations is the count of credentials that are made here, and the one that is claimed for users who do not exist.
const DefaultIterations = 4096
