package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/record"
)

// publishWindow is how many publishes a connection keeps unanswered, as franz-go and Java do.
const publishWindow = 5

// load is a number of connections that publish. One frame is sent again and again: making records is not what is measured.
type load struct {
	address string
	conns   int
	batch   int
	offer   float64 // bytes a second over all connections; 0 for as much as is answered

	due, sent, acked, refused atomic.Int64
}

// rate is what was acknowledged, in bytes a second.
func (l *load) rate(d time.Duration) float64 {
	return float64(l.acked.Load()) * float64(l.batch) / d.Seconds()
}

// run publishes for d and returns the first error of a connection.
func (l *load) run(d time.Duration) error {
	var wg sync.WaitGroup
	errs := make(chan error, l.conns)
	end := time.Now().Add(d)
	for i := range l.conns {
		wg.Go(func() { errs <- l.one(int32(i%partitions), end) })
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// one is one connection until end; what is unanswered then is not waited for.
func (l *load) one(partition int32, end time.Time) error {
	nc, err := net.Dial("tcp", l.address)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := nc.SetDeadline(end); err != nil {
		return err
	}
	slots := make(chan struct{}, publishWindow)
	answers := make(chan error, 1)
	go func() { answers <- l.answers(nc, slots) }()
	err = l.send(nc, l.frame(partition), slots, end)
	if !past(err) {
		return fmt.Errorf("publishing: %w", err)
	}
	if err := <-answers; !past(err) {
		return fmt.Errorf("reading answers: %w", err)
	}
	return nil
}

// past says whether a connection ended because the time was over.
func past(err error) bool { return err == nil || errors.Is(err, os.ErrDeadlineExceeded) }

// send writes frames when they fall due and a slot is free.
func (l *load) send(nc net.Conn, frame []byte, slots chan struct{}, end time.Time) error {
	over := time.NewTimer(time.Until(end))
	defer over.Stop()
	began, mine := time.Now(), int64(0)
	each := l.offer / float64(l.conns) / float64(l.batch) // publishes a second of this connection
	duration := end.Sub(began)
	defer func() {
		if l.offer > 0 {
			l.due.Add(int64(each * duration.Seconds()))
		}
	}()
	for {
		select {
		case slots <- struct{}{}:
		case <-over.C:
			return nil
		}
		if early := time.Duration(float64(mine)/each*float64(time.Second)) - time.Since(began); l.offer > 0 && early > 0 {
			<-time.After(min(early, time.Until(end)))
		}
		if _, err := nc.Write(frame); err != nil {
			return err
		}
		mine++
		l.sent.Add(1)
	}
}

// answers counts answers and frees their slots.
func (l *load) answers(nc net.Conn, slots chan struct{}) error {
	resp := kmsg.NewPtrProduceResponse()
	resp.Version = 9
	buf := make([]byte, 4096)
	for {
		if _, err := io.ReadFull(nc, buf[:4]); err != nil {
			return err
		}
		n := binary.BigEndian.Uint32(buf)
		if n > uint32(len(buf)) {
			return fmt.Errorf("an answer of %d bytes", n)
		}
		if _, err := io.ReadFull(nc, buf[:n]); err != nil {
			return err
		}
		if err := resp.ReadFrom(buf[5:n]); err != nil {
			return err
		}
		if resp.Topics[0].Partitions[0].ErrorCode == 0 {
			l.acked.Add(1)
		} else {
			l.refused.Add(1)
		}
		<-slots
	}
}

// frame is a publish of one batch to one partition.
func (l *load) frame(partition int32) []byte {
	bu, value := record.NewBuilder(record.None), make([]byte, 1000)
	for bu.Size() < l.batch {
		bu.Add(time.Now().UnixMilli(), nil, value, nil)
	}
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, -1, 30_000
	t := kmsg.NewProduceRequestTopic()
	p := kmsg.NewProduceRequestTopicPartition()
	t.Topic, p.Partition, p.Records = topic, partition, bu.Build()
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("overload")).AppendRequest(nil, req, 1)
}

// createTopic makes a topic whose records go soon, so that minutes fit on the disk.
func (b *broker) createTopic(flush string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(b.address))
	if err != nil {
		return err
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	small, none := "67108864", "0"
	_, err = kadm.NewClient(cl).CreateTopic(ctx, partitions, 1, map[string]*string{
		"strandline.flush": &flush, "segment.bytes": &small, "retention.bytes": &small, "strandline.minimum.retention.ms": &none,
	}, topic)
	return err
}
