package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// consumption carries one run of `consume`.
type consumption struct {
	session *session
	topic   string
	out     *bufio.Writer
	render  func([]byte, *kgo.FetchPartition, *kgo.Record) []byte
	limited bool
	left    int64 // records still to print, when limited

	toEnd   bool
	ends    map[int32]int64 // where each partition that is not finished ends, when toEnd
	next    map[int32]int64 // behind the last record that was seen of each of them
	scratch []byte

	group   string        // "" for none
	printed []*kgo.Record // of a group, since the last commit
}

// assign starts fetching the extents. With toEnd, a partition whose position is at its end already is finished.
func (c *consumption) assign(extents []extent, toEnd bool) {
	c.toEnd, c.ends, c.next = toEnd, make(map[int32]int64, len(extents)), make(map[int32]int64, len(extents))
	from := make(map[int32]kgo.Offset, len(extents))
	for _, e := range extents {
		if toEnd {
			if e.from >= e.end {
				continue
			}
			c.ends[e.partition], c.next[e.partition] = e.end, e.from
		}
		from[e.partition] = kgo.NewOffset().At(e.from)
	}
	if len(from) > 0 {
		c.session.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{c.topic: from})
	}
}

func (c *consumption) finished() bool {
	return (c.limited && c.left == 0) || (c.toEnd && len(c.ends) == 0)
}

// run prints records until it is finished, interrupted, or the brokers have been away for the time-out.
func (c *consumption) run(ctx context.Context) error {
	heard := time.Now()
	for !c.finished() {
		// The tick is only there to notice brokers that have gone; records end the wait at once.
		pollCtx, cancel := context.WithTimeout(ctx, time.Second)
		fetches := c.session.client.PollFetches(pollCtx)
		cancel()
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return nil // interrupted: what was read is printed, and nothing was promised beyond
		}
		var failed error
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if failed == nil {
				failed = c.partition(p)
			}
		})
		if err := c.out.Flush(); err != nil {
			if isClosedPipe(err) {
				return nil
			}
			return err
		}
		if err := errors.Join(failed, c.commit(ctx)); err != nil {
			return err
		}
		if fetches.NumRecords() > 0 {
			heard = time.Now()
		} else if c.toEnd {
			c.skipHoles(ctx)
		}
		// Up to the end there are records to come, so silence means that the broker is stuck; beyond it, that nobody produces.
		stuck := c.toEnd && time.Since(heard) > c.session.timeout
		if stuck || c.session.dials.downFor() > c.session.timeout {
			return c.session.explain(context.DeadlineExceeded, "cannot consume %s", c.topic)
		}
	}
	return nil
}

// partition prints what one fetch brought for one partition.
func (c *consumption) partition(p kgo.FetchTopicPartition) error {
	if err := c.fetchError(p); err != nil {
		return err
	}
	end, watched := c.ends[p.Partition]
	if c.toEnd && !watched {
		return nil
	}
	for _, r := range p.Records {
		if c.toEnd && r.Offset >= end {
			break
		}
		if c.limited && c.left == 0 {
			return nil
		}
		if c.group != "" {
			c.printed = append(c.printed, r)
		}
		if r.Attrs.IsControl() {
			continue
		}
		c.scratch = c.render(c.scratch[:0], &p.FetchPartition, r)
		if _, err := c.out.Write(c.scratch); err != nil && !isClosedPipe(err) {
			return err
		}
		c.left--
	}
	if n := len(p.Records); c.toEnd && n > 0 {
		if c.next[p.Partition] = p.Records[n-1].Offset + 1; c.next[p.Partition] >= end {
			delete(c.ends, p.Partition)
		}
	}
	return nil
}

// fetchError decides which errors of a fetch end the command; the client repeats those that pass by themselves.
func (c *consumption) fetchError(p kgo.FetchTopicPartition) error {
	switch err := p.Err; {
	case err == nil, errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, kerr.OffsetOutOfRange):
		return &failure{
			what: fmt.Sprintf("records of partition %d of %s were removed before they were read", p.Partition, c.topic),
			why:  err, todo: "start again at -o start to go on with what is left",
		}
	default:
		return failf(err, "cannot consume partition %d of %s", p.Partition, c.topic)
	}
}
