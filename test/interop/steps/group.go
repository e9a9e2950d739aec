package steps

import (
	"context"
	"errors"
	"fmt"
	"os"
)

const (
	groupName  = "workers"
	ordersName = "orders"
)

// produceOrders appends to both partitions of orders the records first..end-1; their values are their offsets.
func (r *run) produceOrders(ctx context.Context, first, end int64) error {
	var rs []Record
	for o := first; o < end; o++ {
		for p := range int32(2) {
			rs = append(rs, Record{Partition: p, Key: fmt.Appendf(nil, "k%d", p), Value: fmt.Appendf(nil, "%d", o)})
		}
	}
	return r.client.Produce(ctx, ordersName, "none", rs)
}

// progress is what a member has seen: the first offset and the offset after the last, per partition.
type progress struct {
	first, end map[int32]int64
}

func newProgress() *progress {
	return &progress{first: map[int32]int64{}, end: map[int32]int64{}}
}

// add takes records in; a hole is an error, and so is a step back unless repeats are allowed from an offset on.
func (p *progress) add(rs []Record, repeatFrom int64) error {
	for _, rec := range rs {
		fmt.Fprintf(os.Stderr, "read %d/%d\n", rec.Partition, rec.Offset)
		if string(rec.Value) != fmt.Sprint(rec.Offset) {
			return fmt.Errorf("partition %d offset %d holds %q", rec.Partition, rec.Offset, rec.Value)
		}
		end, seen := p.end[rec.Partition]
		switch {
		case !seen:
			p.first[rec.Partition] = rec.Offset
		case rec.Offset > end:
			return fmt.Errorf("partition %d: %d follows %d: records were lost", rec.Partition, rec.Offset, end-1)
		case rec.Offset < end && rec.Offset < repeatFrom:
			return fmt.Errorf("partition %d: %d was read again", rec.Partition, rec.Offset)
		case rec.Offset < end:
			continue // a repeat after the commit
		}
		p.end[rec.Partition] = rec.Offset + 1
	}
	return nil
}

// follow reads until both partitions have been seen up to end.
func (p *progress) follow(ctx context.Context, m *Member, end, repeatFrom int64) error {
	for p.end[0] < end || p.end[1] < end {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("seen up to %d and %d of %d: %w", p.end[0], p.end[1], end, err)
		}
		rs, err := m.Next(ctx)
		if err != nil {
			return fmt.Errorf("seen up to %d and %d of %d: %w", p.end[0], p.end[1], end, err)
		}
		if err := p.add(rs, repeatFrom); err != nil {
			return err
		}
	}
	return nil
}

var errNoMember = errors.New("there is no member: the step before failed")

// noRepeat forbids every repeat: no offset is as large.
const noRepeat = int64(1) << 62

// joinAt lets a new member read up to end, and checks where it began.
func (r *run) joinAt(ctx context.Context, begin, end int64) (*Member, *progress, error) {
	m, err := r.client.Join(ctx, groupName, ordersName)
	if err != nil {
		return nil, nil, err
	}
	seen := newProgress()
	if err := seen.follow(ctx, m, end, noRepeat); err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	if seen.first[0] != begin || seen.first[1] != begin {
		return nil, nil, errors.Join(fmt.Errorf("began at %d and %d, want %d", seen.first[0], seen.first[1], begin), m.Close())
	}
	return m, seen, nil
}

func both(offset int64) map[int32]int64 { return map[int32]int64{0: offset, 1: offset} }

func (r *run) checkCommitted(ctx context.Context, want int64) error {
	got, err := r.client.Committed(ctx, groupName, ordersName)
	if err != nil {
		return err
	}
	if got[0] != want || got[1] != want {
		return fmt.Errorf("committed %d and %d, want %d", got[0], got[1], want)
	}
	return nil
}

// group is the part of the walk up to the restart of the broker, and the member that begins after it.
func (r *run) group() {
	var m *Member
	var seen *progress
	r.report("group", func(ctx context.Context) (err error) {
		if err = r.produceOrders(ctx, 0, 10); err == nil {
			m, seen, err = r.joinAt(ctx, 0, 10)
		}
		return err
	})
	r.report("commit", func(ctx context.Context) error {
		if m == nil {
			return errNoMember
		}
		if err := m.Commit(ctx, both(5)); err != nil {
			return err
		}
		return r.checkCommitted(ctx, 5)
	})
	r.report("restart-consumer", func(ctx context.Context) (err error) {
		if m == nil {
			return errNoMember
		}
		if err = m.Close(); err != nil {
			return err
		}
		if m, seen, err = r.joinAt(ctx, 5, 10); err != nil {
			return err
		}
		return m.Commit(ctx, both(8))
	})
	r.report("kill-9", func(ctx context.Context) error { return r.kill(ctx, m, seen) })
}

// kill restarts the broker under a live member, which must go on; then a new one must begin at the commit.
func (r *run) kill(ctx context.Context, m *Member, seen *progress) error {
	if err := r.restart(); err != nil {
		return err
	}
	if m == nil {
		return errNoMember
	}
	if err := r.produceOrders(ctx, 10, 15); err != nil {
		return fmt.Errorf("produce after the restart: %w", err)
	}
	if err := seen.follow(ctx, m, 15, 8); err != nil {
		return err
	}
	if err := m.Close(); err != nil {
		return err
	}
	got, err := r.client.Read(ctx, "codec-zstd", 0, 0, len(Samples()))
	if err != nil || len(got) != len(Samples()) {
		return fmt.Errorf("%d of %d records after the restart: %v", len(got), len(Samples()), err)
	}
	if r.live, _, err = r.joinAt(ctx, 8, 15); err != nil {
		return fmt.Errorf("a new member after the restart: %w", err)
	}
	return nil
}

// groupAdmin describes the group with its one live member, resets it when empty, and deletes it.
func (r *run) groupAdmin() {
	r.report("describe-group", func(ctx context.Context) error {
		state, members, err := r.client.Describe(ctx, groupName)
		if err == nil && (state != "Stable" || members != 1) {
			err = fmt.Errorf("state %q with %d members, want Stable with 1", state, members)
		}
		return err
	})
	r.report("reset-group", func(ctx context.Context) error {
		if r.live == nil {
			return errNoMember
		}
		if err := r.live.Close(); err != nil {
			return err
		}
		if err := r.client.Reset(ctx, groupName, ordersName, both(2)); err != nil {
			return err
		}
		m, _, err := r.joinAt(ctx, 2, 15)
		if err != nil {
			return err
		}
		return m.Close()
	})
	r.report("delete-group", func(ctx context.Context) error {
		if err := r.client.DeleteGroup(ctx, groupName); err != nil {
			return err
		}
		got, err := r.client.Committed(ctx, groupName, ordersName)
		if err == nil && (got[0] > 0 || got[1] > 0) {
			err = fmt.Errorf("committed %v after the group was deleted", got)
		}
		return err
	})
}
