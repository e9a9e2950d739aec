package server

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/quorum"
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
	Producers(tp kafka.TopicPartition) ([]storage.ProducerEntry, error)
	DeleteRecords(ctx context.Context, items []replica.DeleteItem) []replica.DeleteResult
}

// Quorum is this node's part in the metadata consensus, to be described.
type Quorum interface {
	Leadership() quorum.Leadership
	LogEnd() uint64
}

// Controller takes administrative changes to the active controller, wherever that is.
type Controller interface {
	// Submit decides ev and returns once the decision is committed; version is what the local Image must have reached to show it.
	Submit(ctx context.Context, ev metadata.Event) (reply any, version uint64, err error)
}

// Config is what a Server is built from. All fields but Ends, Voters, Dev and Limits are required.
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
	inflate  inflation                    // the batches that are being decompressed
	frames   shelf                        // of request bytes
	encoders sync.Pool                    // of *wire.FetchEncoder
	outs     sync.Pool                    // of *[]byte: encoded answers
	fetches  sync.Pool                    // of *fetchWork
	apis     []wire.API                   // what is served: what ApiVersions answers
	counts   map[int16]prometheus.Counter // of requests, by key
	open     atomic.Int64
	resolved atomic.Pointer[settings]
}

// New builds a Server; it starts nothing.
func New(c Config) *Server {
	s := &Server{cfg: c, limits: c.Limits.withDefaults(c.Broker())}
	s.budget, s.answers = newBudget(s.limits.Memory/2), newBudget(s.limits.Memory/2)
	s.small = newBudget(s.limits.Memory / smallShare)
	s.frames.limit = int(s.limits.Memory / shelfShare)
	s.peers = &peerLog{log: c.Log, metrics: c.Metrics, lines: map[reason]*lineCount{}}
	s.sessions = newSessionCache()
	s.ids, s.inflate = &producerIDs{}, newInflation()
	s.apis = capped(served(), c.Broker().ProtocolCap)
	s.counts = map[int16]prometheus.Counter{}
	for _, a := range s.apis {
		s.counts[a.Key] = c.Metrics.Requests.WithLabelValues(a.Name)
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
}
