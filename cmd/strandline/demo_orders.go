package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// orderEvent is the value of a record.
type orderEvent struct {
	Order  string `json:"order"`
	Number int    `json:"number"` // counts the events of one order from 0
	Total  int    `json:"total"`  // counts the events of all orders from 0, in the order in which they were published
	Status string `json:"status"`
}

var orderStatuses = [...]string{"placed", "paid", "packed", "shipped", "tracked", "delivered"}

// id is the identity of an event for those who receive it, also as the header record-id.
func (e orderEvent) id() string { return fmt.Sprintf("%s/%d", e.Order, e.Number) }

// record is the event as it is published, the same each time.
func (e orderEvent) record() (*kgo.Record, error) {
	value, err := json.Marshal(e)
	return &kgo.Record{Key: []byte(e.Order), Value: value, Headers: []kgo.RecordHeader{{Key: recordIDHeader, Value: []byte(e.id())}}}, err
}

// place is where an event was acknowledged.
type place struct {
	partition int32
	offset    int64
}

// orderService publishes the events and remembers what was acknowledged where.
type orderService struct {
	link      *demoLink
	records   int
	allowed   atomic.Int64 // how many events may be published so far: the stream waits for a chapter that is late, so that it finds a stream
	published atomic.Int64
	acked     atomic.Int64

	client *kgo.Client
	done   chan struct{} // closed when the publishing goroutine has ended and every answer is in

	mu     sync.Mutex
	places map[string]place
	recent []orderEvent            // the last to be acknowledged, at least demoRepeats once there were so many
	mark   time.Time               // when the leader was killed
	after  map[int32]time.Duration // by partition: from the mark to the first acknowledgement of an event that was published after it
	err    error
}

func newOrderService(link *demoLink, records int) *orderService {
	return &orderService{link: link, records: records, places: make(map[string]place, records)}
}

// start begins publishing in the background.
func (o *orderService) start(ctx context.Context) error {
	client, err := o.connect()
	if err != nil {
		return err
	}
	o.client, o.done = client, make(chan struct{})
	go func() {
		defer close(o.done)
		o.publish(ctx)
		_ = client.Flush(ctx) // every record reports its own outcome
	}()
	return nil
}

// connect makes a client that leaves it to the record ids to tell a repeat.
func (o *orderService) connect() (*kgo.Client, error) {
	return kgo.NewClient(append(o.link.options("order-service"),
		kgo.DefaultProduceTopic(demoTopic), kgo.RequiredAcks(kgo.AllISRAcks()), kgo.DisableIdempotentWrite(),
		kgo.MaxProduceRequestsInflightPerBroker(1), // a repeat must not land behind a later event
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)),
		kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.UnknownTopicRetries(-1), // a broker may hear of the topic a little later than the one that was asked to create it
	)...)
}

// repeat publishes the events that were acknowledged last again, one by one, with a client of its own, and counts those that are answered with
// another place than the first time.
func (o *orderService) repeat(ctx context.Context, n int) (repeated, wrong int, err error) {
	client, err := o.connect()
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	o.mu.Lock()
	recent := slices.Clone(o.recent[max(0, len(o.recent)-n):])
	o.mu.Unlock()
	for _, e := range recent {
		r, err := e.record()
		if err == nil {
			err = client.ProduceSync(ctx, r).FirstErr()
		}
		if err != nil {
			return repeated, wrong, err
		}
		repeated++
		o.mu.Lock()
		if o.places[e.id()] != (place{r.Partition, r.Offset}) {
			wrong++
		}
		o.mu.Unlock()
	}
	return repeated, wrong, nil
}

// publish sends the events at a steady pace: event 0 of every order, then event 1 of every order, and so on.
func (o *orderService) publish(ctx context.Context) {
	const tick = 4 * time.Millisecond
	perTick := max(1, int(demoPace*tick/time.Second))
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	orders := max(1, o.records/demoEventsPerOrder)
	for n := range o.records {
		for tickDue := n%perTick == 0; tickDue || int64(n) >= o.allowed.Load(); tickDue = false {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
		number := n / orders
		o.send(ctx, orderEvent{
			Order: fmt.Sprintf("order-%d", n%orders), Number: number, Total: n, Status: orderStatuses[number%len(orderStatuses)],
		})
	}
}

// allow lets the service publish up to a part (0..1) of its events.
func (o *orderService) allow(part float64) { o.allowed.Store(int64(part * float64(o.records))) }

func (o *orderService) send(ctx context.Context, e orderEvent) {
	r, err := e.record()
	if err != nil {
		o.fail(err)
		return
	}
	at := time.Now()
	o.published.Add(1)
	o.client.Produce(ctx, r, func(r *kgo.Record, err error) {
		if err != nil {
			o.fail(fmt.Errorf("event %s was not acknowledged: %s", e.id(), reason(err)))
			return
		}
		o.acknowledge(e, place{r.Partition, r.Offset}, at)
	})
}

func (o *orderService) acknowledge(e orderEvent, where place, published time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.places[e.id()] = where
	if o.recent = append(o.recent, e); len(o.recent) > 2*demoRepeats {
		o.recent = slices.Clone(o.recent[demoRepeats:])
	}
	o.acked.Add(1)
	if o.after != nil && published.After(o.mark) {
		if _, known := o.after[where.partition]; !known {
			o.after[where.partition] = time.Since(o.mark)
		}
	}
}

// markNow begins to measure how long partitions take no event.
func (o *orderService) markNow() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mark, o.after = time.Now(), map[int32]time.Duration{}
}

// sinceMark tells how many of the partitions have acknowledged an event that was published after the mark, and after how long the last did.
func (o *orderService) sinceMark(partitions []int32) (going int, last time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range partitions {
		if d, ok := o.after[p]; ok {
			going++
			last = max(last, d)
		}
	}
	return going, last
}

// busiest is the partition with the most acknowledged events, and used are those with any.
func (o *orderService) busiest() (busiest int32, used map[int32]int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	used = map[int32]int{}
	for _, p := range o.places {
		used[p.partition]++
	}
	for p, n := range used {
		if n > used[busiest] || n == used[busiest] && p < busiest {
			busiest = p
		}
	}
	return busiest, used
}

func (o *orderService) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err == nil {
		o.err = err
	}
}

func (o *orderService) failed() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// wait returns when everything is published and acknowledged.
func (o *orderService) wait(ctx context.Context) error {
	select {
	case <-o.done:
		return o.failed()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (o *orderService) close() {
	if o.client != nil {
		o.client.Close()
	}
}

// ends returns, for each partition, the offset after the last acknowledged event.
func (o *orderService) ends() map[int32]int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	ends := make(map[int32]int64, demoPartitions)
	for _, p := range o.places {
		ends[p.partition] = max(ends[p.partition], p.offset+1)
	}
	return ends
}

// partitionOf tells where an order's events are.
func (o *orderService) partitionOf(order string) int32 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.places[orderEvent{Order: order}.id()].partition
}

// acknowledged returns a copy of what was acknowledged where.
func (o *orderService) acknowledged() map[string]place {
	o.mu.Lock()
	defer o.mu.Unlock()
	places := make(map[string]place, len(o.places))
	for id, p := range o.places {
		places[id] = p
	}
	return places
}
