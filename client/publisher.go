package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// RecordIDHeader is the header that carries a record's identity, unless the topic's strandline.dedup.header names another.
const RecordIDHeader = "record-id"

// PublisherOptions say how a publisher sends. Only Brokers is needed.
type PublisherOptions struct {
	Brokers []string // HOST:PORT; some of the cluster are enough
	// Header is the header for record ids; "": record-id.
	Header string
	// Timeout bounds one Publish with all its attempts; 0: 30 s. It must not exceed Window: a repeat after the window is stored again.
	Timeout time.Duration
	// Window is the topic's strandline.dedup.window.ms; 0: 2 min, its default for topics made by REST or CLI.
	Window time.Duration
	// Linger is how long a record waits for others of its partition to share a batch; 0: not at all, but those that come while a request is
	// on its way share the next.
	Linger time.Duration
	// BatchBytes bounds a batch of one partition, compressed; 0: about 1 MB. A record that is larger is refused.
	BatchBytes int32
	// BufferedRecords and BufferedBytes bound what waits to be acknowledged; 0: 10,000 and 64 MiB. At the bound Publish waits.
	BufferedRecords, BufferedBytes int
	// Kafka are further options of the client under it: TLS, SASL, compression, partitioner. Those that the publisher sets itself win;
	// DisableIdempotentWrite and AllowIdempotentProduceCancellation are refused.
	Kafka []kgo.Opt
}

// Receipt says where a record is stored.
type Receipt struct {
	Topic     string
	Partition int32
	// Offset is where it is; -1: a broker has confirmed that the record is stored without saying where. A Kafka answer names one offset for
	// a batch. So a repeat that was alone in its batch, or whose whole batch was repeated, has its original place; one that went with new
	// records has an offset at which there is no record. It is never the place of another record.
	Offset int64
	// LeaderEpoch is that of the partition's leader as the client knew it when the answer came; -1: not known.
	LeaderEpoch int32
	RecordID    string
}

// Publisher sends records with an identity.
type Publisher struct {
	client  *kgo.Client
	header  string
	timeout time.Duration
	wire    *wireCounts
}

// NewPublisher checks the options. It connects when it publishes.
func NewPublisher(o PublisherOptions) (*Publisher, error) {
	refuse := func(why string) (*Publisher, error) { return nil, fmt.Errorf("publisher: %w: %s", ErrOptions, why) }
	for _, d := range []struct {
		value  *time.Duration
		preset time.Duration
	}{{&o.Timeout, publishTimeoutDefault}, {&o.Window, windowDefault}} {
		if *d.value == 0 {
			*d.value = d.preset
		}
	}
	switch {
	case len(o.Brokers) == 0:
		return refuse("no Brokers")
	case o.Timeout < 0 || o.Window < o.Timeout:
		return refuse(fmt.Sprintf("Timeout %v is not within Window %v", o.Timeout, o.Window))
	}
	if o.Header == "" {
		o.Header = RecordIDHeader
	}
	if o.BufferedRecords <= 0 {
		o.BufferedRecords = bufferedRecordsDefault
	}
	if o.BufferedBytes <= 0 {
		o.BufferedBytes = bufferedBytesDefault
	}
	p := &Publisher{header: o.Header, timeout: o.Timeout, wire: &wireCounts{}}
	opts := append(slices.Clone(o.Kafka),
		kgo.SeedBrokers(o.Brokers...), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(o.Linger),
		kgo.MaxBufferedRecords(o.BufferedRecords), kgo.MaxBufferedBytes(o.BufferedBytes), kgo.WithHooks(p.wire),
	)
	if o.BatchBytes > 0 {
		opts = append(opts, kgo.ProducerBatchMaxBytes(o.BatchBytes))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return refuse(err.Error())
	}
	for _, forbidden := range []any{kgo.DisableIdempotentWrite, kgo.AllowIdempotentProduceCancellation} {
		if set, _ := client.OptValue(forbidden).(bool); set {
			client.Close()
			return refuse("without idempotence, or with its cancellation, a retry may store a record twice and an outcome cannot be known")
		}
	}
	p.client = client
	return p, nil
}

// Publish stores a record on all in-sync replicas and says where. id is its identity, the same whenever the same thing is published again, by
// this process or by another; "": the record's header if it has one, else a new one, which the Receipt or the PublishError tells. The record
// is not changed; its key, value and headers must not be changed by the caller either.
//
// The same record with the same id is sent until it is acknowledged, refused for good, or the time is up (Timeout, or ctx). The error is a
// *PublishError; if it says OutcomeUnknown, the record may be stored, or may still become so: publish it again with the same id.
//
// Records that one goroutine publishes to one partition, one after the other, are stored in that order.
func (p *Publisher) Publish(ctx context.Context, id string, r *kgo.Record) (Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	sent := *r
	sent.Context = nil // of the attempt
	if id == "" {
		id = header(r, p.header)
	}
	if id == "" {
		id = rand.Text()
	}
	sent.Headers = slices.DeleteFunc(slices.Clone(r.Headers), func(h kgo.RecordHeader) bool { return h.Key == p.header })
	sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: p.header, Value: []byte(id)})
	fault := &PublishError{Topic: r.Topic, RecordID: id}
	for fault.Attempts = 1; ; fault.Attempts++ {
		last := p.send(ctx, sent)
		if last.err == nil {
			_, epoch, err := p.client.PartitionLeader(last.record.Topic, last.record.Partition)
			if err != nil {
				epoch = -1
			}
			return Receipt{
				Topic: last.record.Topic, Partition: last.record.Partition, Offset: last.record.Offset, LeaderEpoch: epoch, RecordID: id,
			}, nil
		}
		fault.Err, fault.Partition, fault.again = last.err, last.partition, last.again
		fault.unknown = fault.unknown || last.unknown // a refusal says nothing about earlier attempts
		if !last.again {
			return Receipt{}, fault
		}
		pause := time.NewTimer(backoff(backoffMinDefault, time.Second, fault.Attempts))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return Receipt{}, fault
		}
	}
}

// Close ends the publisher. A Publish in progress ends with what is known of it.
func (p *Publisher) Close() { p.client.Close() }
