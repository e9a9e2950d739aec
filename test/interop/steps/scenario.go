package steps

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Client is one library behind the calls of the walk. A step whose call the library lacks is named in Lacks.
type Client struct {
	// Version is the library's version, without a leading v.
	Version string
	// Lacks: step name -> what the library does not have.
	Lacks map[string]string

	Create func(ctx context.Context, topic string, partitions int) error
	// Produce sends in order and returns when all are acknowledged by acks=all.
	Produce func(ctx context.Context, topic, codec string, rs []Record) error
	// Read reads n records of a partition without a group.
	Read func(ctx context.Context, topic string, partition int32, from int64, n int) ([]Record, error)
	// Join subscribes a new member, from the commit or else the start.
	Join func(ctx context.Context, group, topic string) (*Member, error)
	// Committed returns the group's offsets of the topic.
	Committed func(ctx context.Context, group, topic string) (map[int32]int64, error)
	OffsetAt  func(ctx context.Context, topic string, partition int32, at time.Time) (int64, error)
	// Seek reads a first record, seeks, and returns the offset of the next record read.
	Seek func(ctx context.Context, topic string, partition int32, to int64) (int64, error)
	// Describe returns the group's state and the number of its members.
	Describe    func(ctx context.Context, group string) (string, int, error)
	Reset       func(ctx context.Context, group, topic string, to map[int32]int64) error
	DeleteGroup func(ctx context.Context, group string) error
	DeleteTopic func(ctx context.Context, topic string) error
	// Topics lists the topics' names.
	Topics func(ctx context.Context) ([]string, error)
}

// Member is a consumer in a group.
type Member struct {
	// Next returns some records; an empty result is no error. It keeps trying while the broker is away.
	Next   func(ctx context.Context) ([]Record, error)
	Commit func(ctx context.Context, offsets map[int32]int64) error
	// Close leaves the group.
	Close func() error
}

type run struct {
	client *Client
	failed bool
	// read holds what was read back, per codec.
	read map[string][]Record
	// live is the member that joined after the restart.
	live *Member
}

// Walk runs every step and ends the process: 0 when none failed.
func Walk(c *Client) {
	r := &run{client: c, read: map[string][]Record{}}
	fmt.Printf("version %s\n", c.Version)
	r.report("create", r.create)
	for _, codec := range Codecs {
		r.report(codec, func(ctx context.Context) error { return r.codec(ctx, codec) })
	}
	r.shapes()
	r.group()
	r.report("by-time", r.byTime)
	r.report("seek", r.seek)
	r.groupAdmin()
	r.report("delete-topic", r.deleteTopics)
	if r.failed {
		os.Exit(1)
	}
	os.Exit(0)
}

func (r *run) topics() []string {
	out := []string{"orders", "times"}
	for _, codec := range Codecs {
		out = append(out, "codec-"+codec)
	}
	return out
}

func (r *run) create(ctx context.Context) error {
	for _, topic := range r.topics() {
		partitions := 1
		if topic == "orders" {
			partitions = 2
		}
		if err := r.client.Create(ctx, topic, partitions); err != nil {
			return fmt.Errorf("%s: %w", topic, err)
		}
	}
	return r.listed(ctx, true)
}

// listed waits until all topics of the walk are listed, or none is: of several brokers one may hear of a change some milliseconds after another
// one has answered it.
func (r *run) listed(ctx context.Context, present bool) error {
	end := time.After(listTimeMax)
	for {
		names, err := r.client.Topics(ctx)
		if err == nil {
			err = contains(names, r.topics(), present)
		}
		if err == nil {
			return nil
		}
		select {
		case <-end:
			return err
		case <-time.After(listEvery):
		}
	}
}

// contains checks that all of want are in names, or that none is.
func contains(names, want []string, present bool) error {
	have := map[string]bool{}
	for _, n := range names {
		have[n] = true
	}
	for _, w := range want {
		if have[w] != present {
			return fmt.Errorf("topic %s listed: %v, want %v", w, have[w], present)
		}
	}
	return nil
}

func (r *run) codec(ctx context.Context, codec string) error {
	topic := "codec-" + codec
	if err := r.client.Produce(ctx, topic, codec, Samples()); err != nil {
		return fmt.Errorf("produce: %w", err)
	}
	got, err := r.client.Read(ctx, topic, 0, 0, len(Samples()))
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if len(got) != len(Samples()) {
		return fmt.Errorf("%d records, sent %d", len(got), len(Samples()))
	}
	r.read[codec] = got
	for i, want := range Samples() {
		if got[i].Offset != int64(i) {
			return fmt.Errorf("record %d has offset %d", i, got[i].Offset)
		}
		if err := Compare(want, got[i], Lenience{Keys: true, Values: true, HeaderValues: true, Repeats: true}); err != nil {
			return fmt.Errorf("record %d: %w", i, err)
		}
	}
	return nil
}

// shapes judges what came back by each of the four kinds of difference alone.
func (r *run) shapes() {
	all := Lenience{Keys: true, Values: true, HeaderValues: true, Repeats: true}
	strict := func(change func(*Lenience)) func(context.Context) error {
		l := all
		change(&l)
		return func(context.Context) error { return r.compareAll(l) }
	}
	r.report("keys", strict(func(l *Lenience) { l.Keys = false }))
	r.report("values", strict(func(l *Lenience) { l.Values = false }))
	r.report("headers", strict(func(l *Lenience) { l.Repeats = false }))
	r.report("null-headers", strict(func(l *Lenience) { l.Repeats, l.HeaderValues = false, false }))
}

func (r *run) compareAll(l Lenience) error {
	if len(r.read) == 0 {
		return errors.New("nothing was read back")
	}
	for codec, got := range r.read {
		for i, want := range Samples() {
			if err := Compare(want, got[i], l); err != nil {
				return fmt.Errorf("%s, record %d: %w", codec, i, err)
			}
		}
	}
	return nil
}

func (r *run) byTime(ctx context.Context) error {
	base := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	var rs []Record
	for i := range 3 {
		rs = append(rs, Record{Value: []byte("t"), At: base.Add(time.Duration(i) * time.Second)})
	}
	if err := r.client.Produce(ctx, "times", "none", rs); err != nil {
		return err
	}
	for _, q := range []struct {
		after time.Duration
		want  int64
	}{{-time.Second, 0}, {time.Millisecond, 1}, {2 * time.Second, 2}} {
		got, err := r.client.OffsetAt(ctx, "times", 0, base.Add(q.after))
		if err != nil {
			return err
		}
		if got != q.want {
			return fmt.Errorf("offset at %v is %d, want %d", q.after, got, q.want)
		}
	}
	return nil
}

func (r *run) seek(ctx context.Context) error {
	for _, to := range []int64{6, 3} {
		got, err := r.client.Seek(ctx, "codec-none", 0, to)
		if err != nil {
			return err
		}
		if got != to {
			return fmt.Errorf("after a seek to %d the next record is %d", to, got)
		}
	}
	return nil
}

func (r *run) deleteTopics(ctx context.Context) error {
	for _, topic := range r.topics() {
		if err := r.client.DeleteTopic(ctx, topic); err != nil {
			return fmt.Errorf("%s: %w", topic, err)
		}
	}
	return r.listed(ctx, false)
}
