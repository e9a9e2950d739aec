package server

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// sought sends a seek and returns what its tag says.
func (c *testClient) sought(req *kmsg.OffsetCommitRequest, mode byte) (code kafka.ErrorCode, moved int32) {
	c.t.Helper()
	req.UnknownTags.Set(seekTag, []byte{mode})
	told := false
	ask[*kmsg.OffsetCommitResponse](c, req).UnknownTags.Each(func(tag uint32, v []byte) {
		if tag != seekTag {
			return
		}
		told = true
		d := wire.NewDecoder(v)
		d.ExpectHeader(seekTag, 0)
		code, moved = kafka.ErrorCode(d.Int16()), d.Int32()
		d.Tags(nil)
		must(c.t, d.Done())
	})
	if !told {
		c.t.Fatal("the answer has no tag")
	}
	return code, moved
}

// TestR50_SeekAndUndoOnTheWire: a seek moves a group, an undo brings it back, both are refused while it has members, and nothing is moved then.
func TestR50_SeekAndUndoOnTheWire(t *testing.T) {
	_, c := newGroupBroker(t)
	id := c.create("orders", 1)
	stored := func() int64 {
		return ask[*kmsg.OffsetFetchResponse](c, newOffsetFetch("orders", id)).Groups[0].Topics[0].Partitions[0].Offset
	}
	undo := func() *kmsg.OffsetCommitRequest {
		r := kmsg.NewPtrOffsetCommitRequest()
		r.Version, r.Group, r.Generation = 9, testGroup, -1
		return r
	}
	to := func(offset int64) *kmsg.OffsetCommitRequest {
		r := newCommit("orders", id, offset)
		r.Generation = -1
		return r
	}
	if code := ask[*kmsg.OffsetCommitResponse](c, to(42)).Topics[0].Partitions[0].ErrorCode; code != 0 {
		t.Fatal(kafka.ErrorCode(code))
	}
	for _, step := range []struct {
		req  *kmsg.OffsetCommitRequest
		mode byte
		want int64
	}{{to(7), seekTo, 7}, {undo(), seekUndo, 42}, {undo(), seekUndo, 7}} {
		if code, moved := c.sought(step.req, step.mode); code != kafka.None || moved != 1 {
			t.Fatalf("mode %d: %v, %d moved", step.mode, code, moved)
		}
		if got := stored(); got != step.want {
			t.Fatalf("after mode %d the group is at %d, want %d", step.mode, got, step.want)
		}
	}
	joinAlone(c)
	for mode, req := range map[byte]*kmsg.OffsetCommitRequest{seekTo: to(1), seekUndo: undo()} {
		if code, moved := c.sought(req, mode); code != kafka.NonEmptyGroup || moved != 0 {
			t.Errorf("mode %d of an active group: %v, %d moved", mode, code, moved)
		}
	}
	if got := stored(); got != 7 {
		t.Errorf("the active group is at %d", got)
	}
}

// TestR150_AnUndoTakesReadOnItsTopics: an undo names no topics, and yet takes Read on those that it moves; without it, nothing moves.
func TestR150_AnUndoTakesReadOnItsTopics(t *testing.T) {
	b := newGuardedBroker(t, "user")
	super, user := b.loggedInAs("super"), b.loggedInAs("user")
	findCoordinator(super)
	id := super.create("orders", 1)
	for _, offset := range []int64{42, 7} {
		to := newCommit("orders", id, offset)
		to.Generation = -1
		if code, _ := super.sought(to, seekTo); code != kafka.None {
			t.Fatal(code)
		}
	}
	const allow = kmsg.ACLPermissionTypeAllow
	readsGroup := right(t, "user", "Read:Group", testGroup, allow)
	for _, step := range []struct {
		acls []metadata.ACL
		code kafka.ErrorCode
		want int64
	}{
		{[]metadata.ACL{readsGroup}, kafka.TopicAuthorizationFailed, 7},
		{[]metadata.ACL{readsGroup, right(t, "user", "Read:Topic", "orders", allow)}, kafka.None, 42},
	} {
		b.setACLs(step.acls...)
		undo := kmsg.NewPtrOffsetCommitRequest()
		undo.Version, undo.Group, undo.Generation = 9, testGroup, -1
		if code, _ := user.sought(undo, seekUndo); code != step.code {
			t.Errorf("%d rights: %v, want %v", len(step.acls), code, step.code)
		}
		if got := ask[*kmsg.OffsetFetchResponse](super, newOffsetFetch("orders", id)).Groups[0].Topics[0].Partitions[0].Offset; got != step.want {
			t.Errorf("%d rights: the group is at %d, want %d", len(step.acls), got, step.want)
		}
	}
}
