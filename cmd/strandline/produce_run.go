package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// explicitPartitioner honours a partition that the record names and leaves the others to the key.
type explicitPartitioner struct{ byKey kgo.Partitioner }

func (p explicitPartitioner) ForTopic(topic string) kgo.TopicPartitioner {
	return explicitTopicPartitioner{p.byKey.ForTopic(topic)}
}

type explicitTopicPartitioner struct{ kgo.TopicPartitioner }

func (p explicitTopicPartitioner) RequiresConsistency(r *kgo.Record) bool {
	return r.Partition >= 0 || p.TopicPartitioner.RequiresConsistency(r)
}

func (p explicitTopicPartitioner) Partition(r *kgo.Record, n int) int {
	if r.Partition >= 0 {
		return int(r.Partition)
	}
	return p.TopicPartitioner.Partition(r, n)
}

// production carries one run of `produce`. A reader goroutine sends records and queues them; the caller's goroutine waits for the
// answers in the order of the input and prints them.
type production struct {
	session *session
	topic   string
	limits  *topicLimits
	print   printer
	out     *bufio.Writer
	queue   chan *sentRecord
	stored  int64
}

// sentRecord is a record on its way; err is valid once done is closed.
type sentRecord struct {
	record *kgo.Record
	err    error
	done   chan struct{}
}

func newProduction(a *app, s *session, topic string, limits *topicLimits) *production {
	out := bufio.NewWriter(a.stdout)
	return &production{
		session: s, topic: topic, limits: limits, out: out,
		print: printer{w: out, json: s.json, noHeader: s.noHeader},
		queue: make(chan *sentRecord, produceResultsMax),
	}
}

// run produces everything in source. It returns after the answer to the last record, or after the first failure.
func (p *production) run(ctx context.Context, source recordSource) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	inputErr := make(chan error, 1)
	go func() { inputErr <- p.read(ctx, source) }()

	err := p.answers(ctx)
	if flushErr := p.out.Flush(); err == nil {
		err = flushErr
	}
	if err != nil {
		// The reader may hang in a read of stdin for ever; it owns nothing, and the process is about to end.
		return err
	}
	if err := <-inputErr; err != nil {
		return &failure{what: fmt.Sprintf("record %d of the input cannot be read, the %d before it are stored", p.stored+1, p.stored), why: err}
	}
	return nil
}

// read sends the records of the input and queues them for answers; it closes the queue at the end of the input.
func (p *production) read(ctx context.Context, source recordSource) error {
	defer close(p.queue)
	for {
		r, err := source()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		sent := &sentRecord{record: r, done: make(chan struct{})}
		p.send(ctx, sent)
		select {
		case p.queue <- sent:
		case <-ctx.Done():
			return nil
		}
	}
}

// send gives a record to the client, unless the topic cannot take it.
func (p *production) send(ctx context.Context, sent *sentRecord) {
	if sent.err = p.limits.check(sent.record); sent.err != nil {
		close(sent.done)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, p.session.timeout)
	p.session.client.Produce(ctx, sent.record, func(_ *kgo.Record, err error) {
		sent.err = err
		close(sent.done)
		cancel()
	})
}

// answers prints the answers in the order of the input, and flushes whenever it would have to wait for one.
func (p *production) answers(ctx context.Context) error {
	for {
		sent, ok, err := p.nextSent(ctx)
		if !ok {
			return err
		}
		select {
		case <-sent.done:
		default:
			if err := p.out.Flush(); err != nil {
				return err
			}
			<-sent.done
		}
		if sent.err != nil {
			return p.failed(sent)
		}
		p.stored++
		if err := p.printAnswer(sent.record); err != nil {
			return err
		}
	}
}

func (p *production) nextSent(ctx context.Context) (*sentRecord, bool, error) {
	select {
	case sent, ok := <-p.queue:
		return sent, ok, nil
	default:
	}
	if err := p.out.Flush(); err != nil {
		return nil, false, err
	}
	select {
	case sent, ok := <-p.queue:
		return sent, ok, nil
	case <-ctx.Done():
		return nil, false, &failure{what: fmt.Sprintf("interrupted after %d records", p.stored)}
	}
}

// failed says which record was not stored, or that nobody knows, and why: in the broker's words when it has answered.
func (p *production) failed(sent *sentRecord) error {
	fate, why, todo := "not stored", sent.err, advice(sent.err)
	var size *tooLargeError
	var code *kerr.Error
	address, cause, down := p.session.dials.down()
	timedOut := errors.Is(why, context.DeadlineExceeded) || errors.Is(why, kgo.ErrRecordTimeout)
	if timedOut {
		fate = "may or may not be stored"
	}
	switch {
	case errors.As(why, &size), errors.Is(why, kerr.MessageTooLarge):
		if size == nil {
			size = p.limits.tooLarge(sent.record)
		}
		why, todo = size, "split it, or raise the limit with `strandline topic set "+p.topic+" "+size.key+"=N`"
	case errors.Is(why, kerr.KafkaStorageError): // a sync that failed may have left the record there
		fate, todo = "may or may not be stored", "see the broker's log: its disk is full or damaged"
	case errors.As(why, &code):
	case down:
		why = fmt.Errorf("cannot reach the broker at %s: %s", address, reason(cause))
	case timedOut:
		why = fmt.Errorf("no answer within %v", p.session.timeout)
	}
	return &failure{what: fmt.Sprintf("record %d of the input %s in %s (%d before it are)", p.stored+1, fate, p.topic, p.stored), why: why, todo: todo}
}

// producedRecord is one line of `produce -o json`. The offset is -1 with --acks 0, where no broker tells.
type producedRecord struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Timestamp int64  `json:"timestamp"` // milliseconds since 1970
}

func (p *production) printAnswer(r *kgo.Record) error {
	if p.print.json {
		return p.print.object(producedRecord{r.Topic, r.Partition, r.Offset, r.Timestamp.UnixMilli()})
	}
	_, err := fmt.Fprintf(p.out, "%s partition %d offset %s\n", r.Topic, r.Partition, offsetOr(r.Offset))
	return err
}
