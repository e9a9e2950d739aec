package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// SchemaVersionHeader is the header that names the version of a record's schema.
const SchemaVersionHeader = "schema-version"

// Delivery says when a worker commits.
type Delivery int

const (
	// AtLeastOnce processes, then commits: a crash in between delivers again.
	AtLeastOnce Delivery = iota
	// AtMostOnce commits up to 50 records, then processes them, each once: a crash in between loses them, and a function that fails has had
	// its only attempt. It is for effects that are worse twice than never.
	AtMostOnce
)

// Action says what to do about a record that cannot be processed.
type Action int

const (
	// Stop keeps the position, reports, and works on other partitions only.
	Stop Action = iota
	// SetAside gives the record to WorkerOptions.Quarantine and, once that has returned nil, goes on.
	SetAside
)

// WorkerOptions say what a worker does. Only the first four are needed. (More than fifteen fields: each is a choice of its own.)
type WorkerOptions struct {
	Brokers []string // HOST:PORT; some of the cluster are enough
	Group   string
	Topics  []string
	// Process works on one record. nil means done. An error is tried again, unless it has a method Retriable() bool that says false. ctx ends
	// when the partition is given up: then return soon, what is returned does not matter. A panic ends the program, and the record is
	// delivered again.
	Process func(ctx context.Context, r *kgo.Record) error

	// Delivery is AtLeastOnce or AtMostOnce.
	Delivery Delivery
	// Concurrency bounds the calls of Process at a time; 0: 16.
	Concurrency int
	// KeyConcurrency is how many records of one partition may be worked on at a time; 0: 1, the order of offsets. With more, records of the
	// same key keep their order and others do not; the position waits for the slowest. Not with AtMostOnce.
	KeyConcurrency int

	// Attempts is how often a record is tried before OnPoison applies; 0: 10, negative: without end.
	Attempts int
	// BackoffMin and BackoffMax bound the pause between attempts, which doubles and is spread by chance; 0: 100 ms and 10 s.
	BackoffMin, BackoffMax time.Duration
	// OnPoison says what to do after the attempts.
	OnPoison Action

	// KnownSchema says whether a value of the header schema-version is one that Process understands; "" is a record without the header. nil:
	// all are, which is to say that Process judges them.
	KnownSchema func(version string) bool
	// OnUnknownSchema says what to do with others.
	OnUnknownSchema Action

	// Quarantine keeps a record that is set aside, for somebody to look at; QuarantineTopic makes one. It is tried like Process.
	Quarantine func(ctx context.Context, f Failure) error
	// OnStopped is told of each partition that stops, once: the place for an alert. It must not block.
	OnStopped func(*PartitionError)

	// CommitEvery is the pause between commits; 0: 1 s. What a crash delivers again is at most what was done since the last.
	CommitEvery time.Duration
	// DrainMax is how long functions in progress may take to end when a partition is given up or the worker stops, before their context
	// ends; 0: 10 s. It must be well below the rebalance time-out (kgo's default: 60 s).
	DrainMax time.Duration
	// Log hears of stops (error), failed attempts and commits (warn); nil: slog.Default().
	Log *slog.Logger
	// Kafka are further options of the client under it: TLS, SASL, instance id, group protocol. Those that the worker sets itself win.
	Kafka []kgo.Opt
}

// Worker is a member of a consumer group.
type Worker struct {
	o      WorkerOptions
	client *kgo.Client
	slots  chan struct{} // one for each call of Process
	turn   chan struct{} // whoever commits has it: an older position must not follow a newer one
	ran    atomic.Bool
	built  chan struct{} // closed when client is set: kgo may call before NewClient has returned

	mu         sync.Mutex
	partitions map[topicPartition]*partition // assigned
	stops      []error                       // of partitions, as they happened
	base       context.Context               // of all partitions; ends after the drain
	asking     sync.WaitGroup                // questions for ranges
}

type topicPartition struct {
	topic     string
	partition int32
}

// NewWorker checks the options. It joins the group when it runs.
func NewWorker(o WorkerOptions) (*Worker, error) {
	if why := o.fault(); why != "" {
		return nil, fmt.Errorf("worker: %w: %s", ErrOptions, why)
	}
	o.setDefaults()
	return &Worker{
		o: o, slots: make(chan struct{}, o.Concurrency), turn: make(chan struct{}, 1), built: make(chan struct{}),
		partitions: map[topicPartition]*partition{},
	}, nil
}

// fault says what is wrong with the options, or "".
func (o *WorkerOptions) fault() string {
	switch {
	case len(o.Brokers) == 0:
		return "no Brokers"
	case o.Group == "":
		return "no Group"
	case len(o.Topics) == 0:
		return "no Topics"
	case o.Process == nil:
		return "no Process"
	case o.Concurrency < 0 || o.KeyConcurrency < 0 || o.KeyConcurrency > keyConcurrencyMax:
		return fmt.Sprintf("Concurrency is to be 0 or more, KeyConcurrency 0 to %d", keyConcurrencyMax)
	case o.Delivery == AtMostOnce && o.KeyConcurrency > 1:
		return "KeyConcurrency works with AtLeastOnce only"
	case o.Delivery == AtMostOnce && o.KnownSchema != nil && o.OnUnknownSchema == Stop:
		return "AtMostOnce has committed a record before its schema version is looked at: OnUnknownSchema must be SetAside"
	case o.Quarantine == nil && (o.OnPoison == SetAside || o.OnUnknownSchema == SetAside):
		return "SetAside needs Quarantine"
	case o.Quarantine != nil && o.OnPoison != SetAside && o.OnUnknownSchema != SetAside:
		return "Quarantine is used by nothing: set OnPoison or OnUnknownSchema to SetAside"
	}
	return ""
}

func (o *WorkerOptions) setDefaults() {
	for _, d := range []struct {
		value  *int
		preset int
	}{{&o.Concurrency, concurrencyDefault}, {&o.KeyConcurrency, 1}, {&o.Attempts, attemptsDefault}} {
		if *d.value == 0 {
			*d.value = d.preset
		}
	}
	for _, d := range []struct {
		value  *time.Duration
		preset time.Duration
	}{
		{&o.BackoffMin, backoffMinDefault}, {&o.BackoffMax, backoffMaxDefault}, {&o.CommitEvery, commitEveryDefault}, {&o.DrainMax, drainMaxDefault},
	} {
		if *d.value <= 0 {
			*d.value = d.preset
		}
	}
	if o.Delivery == AtMostOnce {
		o.Attempts = 1
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Log = o.Log.With("group", o.Group)
}

// Run joins the group and works until ctx ends, or the group refuses the worker. Then it lets functions in progress end (DrainMax), commits,
// and leaves. nil: all went well. The error joins a *PartitionError for each partition that had stopped, a *GroupError if the group refused the
// worker or the last commit was not acknowledged, and ErrAbandoned if a function did not return.
func (w *Worker) Run(ctx context.Context) error {
	if w.ran.Swap(true) {
		return fmt.Errorf("worker: %w: it has run already", ErrOptions)
	}
	base, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	w.base = base
	client, err := kgo.NewClient(w.options()...)
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	w.client = client
	close(w.built)
	committing := make(chan struct{})
	stopCommits := make(chan struct{})
	go func() {
		defer close(committing)
		w.commitOften(stopCommits)
	}()
	refused := w.poll(ctx)
	close(stopCommits)
	<-committing
	left := w.giveUp(w.assigned())
	end()
	w.asking.Wait()
	client.CloseAllowingRebalance()
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(append(w.stops, refused, left)...)
}

// options are those of the client under the worker.
func (w *Worker) options() []kgo.Opt {
	return append([]kgo.Opt{kgo.FetchMaxWait(fetchWaitMax)}, append(w.o.Kafka,
		kgo.SeedBrokers(w.o.Brokers...), kgo.ConsumerGroup(w.o.Group), kgo.ConsumeTopics(w.o.Topics...),
		kgo.ConsumeStartOffset(kgo.NewOffset().AtStart()), // where the group has committed nothing, as in a new partition
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),       // never a jump over what is gone
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(w.onAssigned), kgo.OnPartitionsRevoked(w.onRevoked), kgo.OnPartitionsLost(w.onLost),
	)...)
}

// assigned lists the partitions.
func (w *Worker) assigned() []*partition {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make([]*partition, 0, len(w.partitions))
	for _, p := range w.partitions {
		all = append(all, p)
	}
	return all
}

func (w *Worker) find(topic string, id int32) *partition {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.partitions[topicPartition{topic, id}]
}
