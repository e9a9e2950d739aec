package server

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/quorum"
	"strandline.dev/internal/quota"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/wire"
)

// Replicas are this node's partitions: the record path and its look-ups. *replica.Host is the implementation; the interface is the
// seam at which tests make look-ups fail.
type Replicas interface {
	Append(items []replica.AppendItem, acks int16, timeout time.Duration) *replica.Produce
	Read(items []replica.FetchItem, o replica.FetchOptions, dst *replica.FetchBuffer) []replica.FetchResult
	Park(items []replica.FetchItem, o replica.FetchOptions, minBytes int) *replica.FetchWait
	ListOffset(tp kafka.TopicPartition, timestampMs int64, current kafka.LeaderEpoch, readCommitted bool) (storage.TimestampOffset, error)
	EpochEnd(tp kafka.TopicPartition, epoch, current kafka.LeaderEpoch) (kafka.EpochEnd, error)
	Describe(tp kafka.TopicPartition) (replica.PartitionStatus, bool)
	WaitApplied(ctx context.Context, version uint64) error
}

// Logs are this node's partitions as administration sees them: what lies on its disk, and the explicit deletion of records. *replica.Host
// is the implementation; it stands apart from Replicas to keep the record path's interface small.
type Logs interface {
	Partitions() []kafka.TopicPartition
	Volume() (replica.Volume, error)
	// Slowdown is how long a publish is to be slowed because little room is left on the disk.
	Slowdown() time.Duration
	Producers(tp kafka.TopicPartition) ([]storage.ProducerEntry, error)
	DeleteRecords(ctx context.Context, items []replica.DeleteItem) []replica.DeleteResult
}

// Quorum is this node's part in the metadata consensus, to be described.
type Quorum interface {
	Leadership() quorum.Leadership
	LogEnd() uint64
	// Changed is closed when the next Image is published.
	Changed() <-chan struct{}
}

// Controller takes administrative changes to the active controller, wherever that is.
type Controller interface {
	// Submit decides ev and returns once the decision is committed; version is what the local Image must have reached to show it.
	Submit(ctx context.Context, ev metadata.Event) (reply any, version uint64, err error)
}

// Config is what a Server is built from. All fields but Ends, Voters, Settle, Unanswered, Reach, Access, Authenticator, SessionMax, Audit, SlowAfter, Forwarder,
// Dev and Limits are required.
type Config struct {
	// Node is this node's id.
	Node kafka.NodeID
	// Image returns the newest published Image.
	Image      func() *metadata.Image
	Replicas   Replicas
	Logs       Logs
	Quorum     Quorum
	Controller Controller
	Groups     Groups
	// Broker returns the broker settings in force; it is asked once for each Image.
	Broker func() config.Broker
	// TopicConfig returns the settings in force for a topic; it is asked once for each topic and Image.
	TopicConfig func(*metadata.Topic) config.Topic
	// BrokerEpoch returns the epoch of this process's registration.
	BrokerEpoch func() kafka.BrokerEpoch
	// Ends asks the replicas of partitions what they hold, and Voters changes who votes about the metadata; nil where there are no other nodes.
	Ends   func(context.Context, []kafka.TopicPartition) []metadata.PartitionEnds
	Voters Voters
	// Settle returns nil, or what waits until the controller has judged a broker whose connection has just ended; nil where there are no others.
	Settle func() func(context.Context)
	// Unanswered is for how long no active controller has answered this node; nil where this node is the only one.
	Unanswered func() time.Duration
	// Reach dials another node; nil where there is none.
	Reach func(context.Context, kafka.NodeID) error
	// Access says who may do what; nil: everybody may do everything. Authenticator finds out who clients are, where a listener asks them, and
	// SessionMax is how long that holds (0: no limit). Audit keeps what happened; nil: nobody does.
	Access        *auth.Authorizer
	Authenticator *auth.Authenticator
	SessionMax    time.Duration
	Audit         Audit
	// SlowAfter is how long a request may take without a line in the log; 0: none is too slow.
	SlowAfter time.Duration
	// Forwarder carries requests to other nodes and takes theirs; nil: this node does everything itself.
	Forwarder *Forwarder
	// Dev is set under `strandline dev`: it changes defaults and the `advertise: auto` rule for other nodes.
	Dev     bool
	Wall    sys.Wall
	Log     *slog.Logger
	Metrics *metrics.Broker
	Limits  Limits
}

// Server is the Kafka door of a node.
type Server struct {
	cfg      Config
	limits   Limits
	budget   *budget // of request bytes
	small    *budget // of the bytes of small requests
	answers  *budget // of response bytes: apart, so that slow readers cannot stop publishes
	peers    *peerLog
	sessions *sessionCache
	ids      *producerIDs
	quotas   *quota.Limiter
	inflate  inflation                    // the batches that are being decompressed
	frames   shelf                        // of request bytes
	encoders sync.Pool                    // of *wire.FetchEncoder
	outs     sync.Pool                    // of *[]byte: encoded answers
	fetches  sync.Pool                    // of *fetchWork
	apis     []wire.API                   // what is served: what ApiVersions answers
	counts   map[int16]prometheus.Counter // of requests, by key
	open     atomic.Int64
	applied  atomic.Uint64 // a version of the metadata that this node's partitions have reached
	sent     atomic.Uint64 // answers that sent a client to another leader
	resolved atomic.Pointer[settings]
}

// New builds a Server; it starts nothing.
func New(c Config) *Server {
	if c.Access == nil {
		c.Access = auth.NewAuthorizer(c.Image, auth.Options{})
	}
	s := &Server{cfg: c, limits: c.Limits.withDefaults(c.Broker())}
	s.budget, s.answers = newBudget(s.limits.Memory/2), newBudget(s.limits.Memory/2)
	s.small = newBudget(s.limits.Memory / smallShare)
	s.frames.limit = int(s.limits.Memory / shelfShare)
	s.peers = &peerLog{log: c.Log, metrics: c.Metrics, lines: map[reason]*lineCount{}}
	s.sessions = newSessionCache()
	s.ids, s.inflate, s.quotas = &producerIDs{}, newInflation(), quota.New(c.Image)
	s.apis = capped(served(), c.Broker().ProtocolCap)
	s.counts = map[int16]prometheus.Counter{}
	for _, a := range s.apis {
		s.counts[a.Key] = c.Metrics.Requests.WithLabelValues(a.Name)
	}
	s.showLoginFailures()
	for k := metadata.QuotaProduce; k <= metadata.QuotaConnection; k++ {
		c.Metrics.ThrottledBy(k.String())
	}
	if c.Forwarder != nil {
		c.Forwarder.server.Store(s)
	}
	return s
}

// Listener is one place where clients connect.
type Listener struct {
	// Name is the listener's name; each broker registers an address under it.
	Name string
	// Net accepts the connections.
	Net net.Listener
	// Advertise is the host:port that clients are told for this node; "" and "auto" mean the address that they dialled.
	Advertise string
	// Door is what clients are asked for.
	Door Door
}
