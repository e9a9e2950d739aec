package server

import (
	"net/netip"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/quota"
)

// Call is one decoded request from any door.
type Call struct {
	// Principal is who asks (I15).
	Principal kafka.Principal
	// Request is the decoded request with its version set.
	Request kmsg.Request
	// ClientID is the client's own name for itself, "" when it gave none.
	ClientID string
	// Peer is the client's address, for logs only.
	Peer string
	// Listener is the name of the listener the request came in on; "" means the first one of each broker (REST).
	Listener string
	// Local is the local address of the accepted connection; the zero value means unknown. `advertise: auto` answers with it.
	Local netip.AddrPort
	// Advertise is the listener's own advertised address; the zero value means `auto`.
	Advertise Endpoint
	// Received is when the request had arrived (monotonic), the start of every deadline.
	Received time.Time

	host   string        // Peer without its port: whose fetch sessions these are
	guard  *guard        // of the connection; nil at a door without connections
	grants *auth.Grants  // what the principal may do
	client *quota.Client // nil: no quota holds
}

// Reply is what a handler hands back: a ready answer, a Pending one, or (both nil) no answer, as for acks=0.
type Reply struct {
	// Response is the ready answer.
	Response kmsg.Response
	// Pending is set instead while the answer is not known.
	Pending Pending
	// Throttle is how long the connection's reader takes no new frame, counted from when the answer was queued.
	Throttle time.Duration
	// Close closes the connection once earlier answers and this one are out: the only error signal that acks=0 has.
	Close bool
	why   reason // to close; "" for an error of a publish with acks=0
	// Release gives back the buffers that Response points into; nil when there are none. It is called exactly once.
	Release func()
}

// Pending is a parked reply. Its owner waits for Ready or Deadline, then calls Complete, until that reports done; or it calls
// Cancel. The owner calls from one goroutine at a time.
type Pending interface {
	// Ready is closed when Complete may have an answer. After a Complete that was not done, Ready is another channel.
	Ready() <-chan struct{}
	// Deadline is when Complete is to be called with late set; the zero time means none.
	Deadline() time.Time
	// Complete returns the reply, or false to go on waiting. With late set it is always done.
	Complete(late bool) (Reply, bool)
	// Cancel drops the wait and everything it holds: nobody will read the answer.
	Cancel()
}

func ready(r kmsg.Response) Reply { return Reply{Response: r} }
