package auth

import "strandline.dev/internal/kafka"

// What an Event is about.
const (
	LoginFailed = "login failed"
	Denied      = "denied"
	Change      = "change"
)

// Event is something that an audit trail keeps: a failed login, a denial, an administrative change. It has no secrets.
type Event struct {
	What      string
	Principal kafka.Principal
	Peer      string // address
	Client    string // the client's own name for itself, cut
	API       string
	// Resource is what was acted on, or was to be.
	Resource string
	// Before and After are what a change replaces and what it asks for.
	Before, After string
	// Outcome is why it failed or was denied, "" when it was done.
	Outcome string
}
