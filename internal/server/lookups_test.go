package server

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/sys/systest"
	"strandline.dev/internal/wire"
)

// TestC062_CommittedOffsetsThatCannotBeRead: a coordinator that cannot read where its groups are says so at every version, and names no offset; when
// it can read again it names the one that was stored.
func TestC062_CommittedOffsetsThatCannotBeRead(t *testing.T) {
	api, _ := wire.Lookup(wire.KeyOffsetFetch)
	for why, one := range map[string]struct {
		err  error
		want kafka.ErrorCode
	}{
		"an internal error": {errors.New("failpoint"), kafka.CoordinatorLoadInProgress},
		"a damaged log":     {replica.ErrStorage, kafka.CoordinatorNotAvailable},
	} {
		t.Run(why, func(t *testing.T) {
			disk := t.TempDir()
			var id kafka.TopicID
			t.Run("stored", func(t *testing.T) {
				c := newTestBroker(t, testOptions{disk: disk}).dial()
				findCoordinator(c)
				id = c.create("orders", 1)
				offset := newCommit("orders", id, 7)
				offset.Generation = -1
				if code := commit(c, offset); code != kafka.None {
					t.Fatal(code)
				}
			})
			b := newTestBroker(t, testOptions{disk: disk, failing: one.err})
			c := b.dial()
			req := newOffsetFetch("orders", id)
			eventually(t, fmt.Sprint(one.want), func() bool { // the first moment it has not tried
				return kafka.ErrorCode(groupError(ask[*kmsg.OffsetFetchResponse](c, req))) == one.want
			})
			for req.Version = api.Min; req.Version <= api.Max; req.Version++ {
				resp := ask[*kmsg.OffsetFetchResponse](c, req)
				if code := kafka.ErrorCode(groupError(resp)); code != one.want && code != kafka.CoordinatorLoadInProgress {
					t.Errorf("v%d: %v, want %v", req.Version, code, one.want)
				}
				for _, at := range offsetsIn(resp) {
					if at != -1 {
						t.Errorf("v%d: offset %d beside the error", req.Version, at)
					}
				}
			}
			b.failLookups(nil)
			req.Version = 9
			eventually(t, "the stored offset", func() bool {
				at, code := fetchOffset(c, req)
				if code == kafka.None && at != 7 {
					t.Fatalf("offset %d without an error", at)
				}
				return code == kafka.None
			})
		})
	}
}

// offsetsIn are the offsets that an answer names, in whatever version.
func offsetsIn(r *kmsg.OffsetFetchResponse) (offsets []int64) {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			offsets = append(offsets, p.Offset)
		}
	}
	for _, g := range r.Groups {
		for _, t := range g.Topics {
			for _, p := range t.Partitions {
				offsets = append(offsets, p.Offset)
			}
		}
	}
	return offsets
}

// TestC062_ACoordinatorThatCannotBeFound: while the coordinators' topic cannot be made, no version of the answer names a node.
func TestC062_ACoordinatorThatCannotBeFound(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	b.control.failWith(errors.New("failpoint"))
	api, _ := wire.Lookup(wire.KeyFindCoordinator)
	for v := api.Min; v <= api.Max; v++ {
		r := ask[*kmsg.FindCoordinatorResponse](c, withVersion(groupRequest(wire.KeyFindCoordinator, "", kafka.TopicID{}), v))
		node, host, port := r.NodeID, r.Host, r.Port
		if v >= findCoordinatorBatch {
			node, host, port = r.Coordinators[0].NodeID, r.Coordinators[0].Host, r.Coordinators[0].Port
		}
		if code := kafka.ErrorCode(groupError(r)); code != kafka.CoordinatorNotAvailable || node != -1 || host != "" || port != -1 {
			t.Errorf("v%d: %v, node %d at %q:%d", v, code, node, host, port)
		}
	}
	b.control.failWith(nil)
	eventually(t, "the coordinator", func() bool {
		return groupError(ask[*kmsg.FindCoordinatorResponse](c, groupRequest(wire.KeyFindCoordinator, "", kafka.TopicID{}))) == 0
	})
}

// TestC062_LagAndTimesThatCannotBeRead: when the end of a partition is not told, or its segment cannot be read, the lag of a group is unknown and not
// 0, and the offset of a time is an error and not 0.
func TestC062_LagAndTimesThatCannotBeRead(t *testing.T) {
	b, c := newGroupBroker(t)
	id := c.create("orders", 1)
	c.publish(newProduce("orders", 0, b.newBatch("a", "b", "c")))
	offset := newCommit("orders", id, 1)
	offset.Generation = -1
	if code := commit(c, offset); code != kafka.None {
		t.Fatal(code)
	}
	const timestamp = 1
	check := func(when string, known bool) {
		t.Helper()
		r, code := c.reported()
		if code != kafka.None || len(r.Partitions) != 1 {
			t.Fatalf("%s: %v, %+v", when, code, r)
		}
		p := r.Partitions[0]
		if known && (p.State != group.NoMembers || p.Lag != 2 || p.Start != 0 || p.End != 3 || p.Committed != 1) {
			t.Errorf("%s: %+v", when, p)
		}
		if !known && (r.State != group.BacklogUnknown || p.State != group.BacklogUnknown || p.Lag != -1 || p.Start != -1 || p.End != -1 || p.Committed != 1 || p.Expires) {
			t.Errorf("%s: %v %+v", when, r.State, p)
		}
		l := c.listOffset("orders", timestamp, 11)
		if known && (l.ErrorCode != 0 || l.Offset != 0) || !known && (l.ErrorCode == 0 || l.Offset != -1 || l.Timestamp != -1 || l.LeaderEpoch != -1) {
			t.Errorf("%s: the offset of a time: %+v", when, l)
		}
	}
	check("at first", true)
	b.failLookups(errors.New("failpoint"))
	check("the look-ups fail", false)
	b.failLookups(nil)
	check("they succeed again", true)
	b.fs.Hook(func(op systest.Op) error {
		if op.Kind == systest.OpRead && strings.Contains(op.Name, kafka.TopicPartition{Topic: id}.String()) {
			return fs.ErrPermission
		}
		return nil
	})
	check("the segment cannot be read", false)
	b.fs.Hook(nil)
	check("it can be read again", true)
}
