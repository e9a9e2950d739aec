// Package metrics holds every counter, gauge and histogram of a node and exposes them in Prometheus text form.
//
// Knows: names, help texts, label sets and buckets. Does not know: when a number changes; the owner of the event calls the
// instrument. Names are fixed by the contract and never change meaning.
//
// Cardinality is bounded (I14): the topic names of ProduceFailed are capped at topicLabelsMax, its clients with clientFailuresMax, the groups
// of Backlogs at groupLabelsMax, the clients of ClientClocks at clientClocksMax and those of Throttled at clientLabelsMax; what is beyond counts
// under "other". What is by partition or by client is at /metrics/detail alone.
//
// Concurrency: all methods may be called from any goroutine.
package metrics

import (
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// topicLabelsMax bounds the distinct topic label values: a client that invents topic names must not grow memory (I14).
const topicLabelsMax = 1000

// ackBuckets span 50 us to 10 s in steps of about 2: a healthy acknowledgement is 0.2-10 ms, a time-out is 1 s or more.
var ackBuckets = prometheus.ExponentialBuckets(50e-6, 2, 18)

// Registry holds the instruments of one node.
type Registry struct {
	// Broker are the instruments of the request path.
	Broker *Broker
	// Storage are the instruments of one data directory.
	Storage *Storage
	// Peer are the instruments of calls between nodes.
	Peer *Peer

	prom   *prometheus.Registry
	detail *prometheus.Registry // a line or more for each partition: apart, so that it is asked for rarely
}

// New returns a registry with all instruments at zero, plus the Go runtime's and the process's.
func New() *Registry {
	p := prometheus.NewRegistry()
	p.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	detail := prometheus.NewRegistry()
	r := &Registry{Broker: newBroker(p, detail), Storage: newStorage(p), Peer: newPeer(p), prom: p, detail: detail}
	p.MustRegister(groupCollector{r.Broker.Backlogs})
	r.detail.MustRegister(partitionCollector{r.Broker.Backlogs})
	r.detail.MustRegister(r.Broker.ClientClocks)
	return r
}

// Handler serves the registry as a Prometheus scrape target.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.prom, promhttp.HandlerOpts{})
}

// GaugeFunc registers a gauge whose value is read by f at each scrape; f must not block.
func (r *Registry) GaugeFunc(name, help string, f func() float64) {
	r.prom.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f))
}

// CertificateExpiry registers how many seconds the certificate of one listener or use is still valid, negative when it has ended. f is called at
// each scrape and must not block.
func (r *Registry) CertificateExpiry(certificate string, f func() float64) {
	r.prom.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "strandline_tls_certificate_expiry_seconds", Help: "Seconds until the certificate in use ends.",
		ConstLabels: prometheus.Labels{"certificate": certificate},
	}, f))
}

// Broker are the instruments of the request path.
type Broker struct {
	// ProduceAck observes seconds from the receipt of a publish to its acknowledgement.
	ProduceAck prometheus.Observer
	// LeaderChanges counts the leaderships this node has taken up.
	LeaderChanges prometheus.Counter
	// PossibleLoss counts partitions that came back although the operating system was restarted under unsynced records (I4).
	PossibleLoss prometheus.Counter
	// TruncatedBelowHW counts truncations below the high watermark: 0, unless an operator had a replica lead that lacks records (I5).
	TruncatedBelowHW prometheus.Counter
	// AdminChanges counts committed administrative changes.
	AdminChanges prometheus.Counter
	// ConnectionsOpen is the number of open client connections.
	ConnectionsOpen prometheus.Gauge
	// ConnectionsRefused counts connections closed by the broker, for the reasons the log names.
	ConnectionsRefused *prometheus.CounterVec
	// Requests counts requests by API name.
	Requests *prometheus.CounterVec
	// ProduceBytes and FetchBytes count record bytes in and out.
	ProduceBytes, FetchBytes prometheus.Counter
	// Retries counts publishes recognised as repeats of a stored batch (I12).
	Retries prometheus.Counter
	// Rebalances counts the rebalances of consumer groups that this node coordinates.
	Rebalances prometheus.Counter
	// OffsetsExpired counts committed offsets that were removed because they had reached their retention.
	OffsetsExpired prometheus.Counter
	// AuthFailures counts failed logins, Denials what the ACLs did not allow.
	AuthFailures, Denials *prometheus.CounterVec
	// RecordsLost counts records that groups can no longer read because retention passed their position, or because the log was cut.
	RecordsLost prometheus.Counter
	// ClientClocks is how far the clocks of publishers are ahead.
	ClientClocks *ClientClocks
	// Backlogs is what the groups coordinated here have not read.
	Backlogs *Backlogs
	// AuditEntries counts entries that the audit trail has kept, AuditFailures attempts to keep some that failed, AuditRefused changes that were
	// refused because their entry could not be kept.
	AuditEntries, AuditFailures, AuditRefused prometheus.Counter
	// Canary measures this node's own publishes.
	Canary *Canary
	*Replication
	*Service
	*Throttling

	failures *prometheus.CounterVec
	mu       sync.Mutex
	topics   map[string]struct{}
}

// unknownTopic labels what names no topic. It is no topic's name.
const unknownTopic = "(unknown)"

// ProduceFailed counts one failed partition of a publish. topic is the name of a topic that exists, or empty; what a client calls a topic
// must not come here: labels are kept for ever, and the library panics on one that is not UTF-8. client is what the client calls itself,
// reason a Kafka error name.
func (b *Broker) ProduceFailed(topic, client, reason string) {
	if topic == "" {
		topic = unknownTopic
	}
	b.mu.Lock()
	if _, ok := b.topics[topic]; !ok {
		if len(b.topics) < topicLabelsMax {
			b.topics[topic] = struct{}{}
		} else {
			topic = other
		}
	}
	b.mu.Unlock()
	b.failures.WithLabelValues(topic, reason).Inc()
	b.clientFailed(topic, client, reason)
}

func newBroker(p, detail *prometheus.Registry) *Broker {
	b := &Broker{
		ProduceAck:         histogram(p, "strandline_produce_ack_seconds", "Time from the receipt of a publish to its acknowledgement."),
		LeaderChanges:      counter(p, "strandline_leader_changes_total", "Leaderships taken up by this node."),
		PossibleLoss:       counter(p, "strandline_possible_loss_total", "Partitions that came back after the operating system was restarted under unsynced records."),
		TruncatedBelowHW:   counter(p, "strandline_log_truncated_below_hw_total", "Truncations below the high watermark; must stay 0 unless partitions are recovered by an operator."),
		AdminChanges:       counter(p, "strandline_admin_changes_total", "Committed administrative changes."),
		ProduceBytes:       counter(p, "strandline_produce_bytes_total", "Record bytes accepted from clients."),
		FetchBytes:         counter(p, "strandline_fetch_bytes_total", "Record bytes sent to clients."),
		Retries:            counter(p, "strandline_retries_total", "Publishes recognised as repeats of a stored batch."),
		Rebalances:         counter(p, "strandline_group_rebalances_total", "Rebalances of consumer groups coordinated by this node."),
		OffsetsExpired:     counter(p, "strandline_group_offsets_expired_total", "Committed offsets removed because they reached their retention."),
		RecordsLost:        counter(p, "strandline_group_records_lost_total", "Records that groups can no longer read: retention passed their position. A coordinator that takes over counts what it finds lost."),
		Backlogs:           &Backlogs{},
		ClientClocks:       &ClientClocks{},
		ConnectionsOpen:    gauge(p, "strandline_connections_open", "Open client connections."),
		ConnectionsRefused: counters(p, "strandline_connections_refused_total", "Connections closed by the broker.", "reason"),
		Requests:           counters(p, "strandline_requests_total", "Requests by API.", "api"),
		AuthFailures:       counters(p, "strandline_auth_failures_total", "Failed logins by mechanism and reason.", "mechanism", "reason"),
		Denials:            counters(p, "strandline_access_denied_total", "Actions that were denied, by API.", "api"),
		AuditEntries:       counter(p, "strandline_audit_entries_total", "Entries of this node that the audit trail has kept."),
		AuditFailures:      counter(p, "strandline_audit_failures_total", "Failed attempts to keep entries of the audit trail."),
		AuditRefused:       counter(p, "strandline_audit_refused_changes_total", "Changes refused because the audit trail could not keep them first."),
		failures:           counters(p, "strandline_produce_failures_total", "Failed publishes by topic and reason.", "topic", "reason"),
		topics:             map[string]struct{}{},
		Canary:             newCanary(p),
		Replication:        newReplication(p),
		Service:            newService(p, detail),
		Throttling:         newThrottling(p, detail),
	}
	return b
}

// Storage are the instruments of one data directory.
type Storage struct {
	// Fsync observes the seconds of one sync round or one direct sync.
	Fsync prometheus.Observer
	// SyncFailures counts files whose sync failed; each is final for its log (I11).
	SyncFailures prometheus.Counter
	// CorruptBatches counts batches that failed their checksum when read (I11).
	CorruptBatches prometheus.Counter
	// TornBytes counts bytes cut from torn tails during recovery.
	TornBytes prometheus.Counter
	// Quarantined is the number of quarantined partition directories (I10).
	Quarantined prometheus.Gauge
	// SegmentsDeleted counts segments removed by retention, DeleteRecords or purge.
	SegmentsDeleted prometheus.Counter
	// Compactions counts compaction passes, CompactedRecords the records and CompactedBytes the bytes they removed.
	Compactions, CompactedRecords, CompactedBytes prometheus.Counter
	// CompactionFailures counts passes that an error ended; the log is tried again.
	CompactionFailures prometheus.Counter
	// PublishesRefused is 1 while records of user topics are refused because a disk limit is reached, else 0.
	PublishesRefused prometheus.Gauge
	// ReserveSpent is 1 while they are refused because the disk is full and the reserve was needed, else 0.
	ReserveSpent prometheus.Gauge
}

func newStorage(p *prometheus.Registry) *Storage {
	return &Storage{
		Fsync:              histogram(p, "strandline_fsync_seconds", "Duration of one sync round."),
		SyncFailures:       counter(p, "strandline_sync_failures_total", "Files whose sync failed; each is final for its log."),
		CorruptBatches:     counter(p, "strandline_corrupt_batches_total", "Batches that failed their checksum when read."),
		TornBytes:          counter(p, "strandline_torn_bytes_total", "Bytes cut from torn tails during recovery."),
		Quarantined:        gauge(p, "strandline_quarantined_logs", "Quarantined partition directories."),
		SegmentsDeleted:    counter(p, "strandline_segments_deleted_total", "Segments removed."),
		Compactions:        counter(p, "strandline_compactions_total", "Compaction passes over partition logs."),
		CompactedRecords:   counter(p, "strandline_compacted_records_total", "Records removed by compaction."),
		CompactionFailures: counter(p, "strandline_compaction_failures_total", "Compaction passes that an error ended; the log names them."),
		CompactedBytes:     counter(p, "strandline_compacted_bytes_total", "Bytes removed by compaction."),
		PublishesRefused:   gauge(p, "strandline_disk_publishes_refused", "1 while records of user topics are refused because a disk limit is reached."),
		ReserveSpent:       gauge(p, "strandline_disk_reserve_spent", "1 while the disk is full and the reserve is spent for what must go on."),
	}
}

func counter(p *prometheus.Registry, name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	p.MustRegister(c)
	return c
}

func counters(p *prometheus.Registry, name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	p.MustRegister(c)
	return c
}

func gauge(p *prometheus.Registry, name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	p.MustRegister(g)
	return g
}

func histogram(p *prometheus.Registry, name, help string) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: ackBuckets})
	p.MustRegister(h)
	return h
}
