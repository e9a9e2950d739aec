package server

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
)

// reported asks for the backlog of testGroup.
func (c *testClient) reported() (r group.Report, code kafka.ErrorCode) {
	c.t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Version = offsetFetchBatch
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = testGroup
	req.Groups = append(req.Groups, g)
	req.UnknownTags.Set(group.ReportType, []byte{1})
	out := ask[*kmsg.OffsetFetchResponse](c, req).Groups[0]
	out.UnknownTags.Each(func(tag uint32, v []byte) {
		if tag == group.ReportType {
			must(c.t, r.Decode(v))
		}
	})
	return r, kafka.ErrorCode(out.ErrorCode)
}

// TestR149_ABacklogShowsWhatMayBeSeen: a report takes Describe on the group, and leaves out the topics that its reader may not describe,
// also where the last seek came from, and from the state of the group.
func TestR149_ABacklogShowsWhatMayBeSeen(t *testing.T) {
	b := newGuardedBroker(t, "user")
	super, user := b.loggedInAs("super"), b.loggedInAs("user")
	findCoordinator(super)
	for _, topic := range []string{"open", "secret"} {
		id := super.create(topic, 1)
		if topic == "secret" {
			super.publish(newProduce(topic, 0, b.newBatch("x")))
		}
		to := newCommit(topic, id, 0)
		to.Generation = -1
		if code, _ := super.sought(to, seekTo); code != kafka.None {
			t.Fatal(code)
		}
	}
	if r, code := super.reported(); code != kafka.None || len(r.Partitions) != 2 || len(r.Undo) != 1 || r.State != group.NoMembers {
		t.Fatalf("to a super user: %v, %+v", code, r)
	}
	if r, code := user.reported(); code != kafka.GroupAuthorizationFailed || len(r.Partitions) != 0 {
		t.Errorf("without a right: %v, %+v", code, r)
	}
	seesGroup := right(t, "user", "Describe:Group", testGroup, kmsg.ACLPermissionTypeAllow)
	b.setACLs(seesGroup, right(t, "user", "Describe:Topic", "open", kmsg.ACLPermissionTypeAllow))
	if r, code := user.reported(); code != kafka.None || len(r.Partitions) != 1 || r.Partitions[0].Topic != "open" || len(r.Undo) != 0 || r.State != group.CaughtUp {
		t.Errorf("with a right on one topic: %v, %+v", code, r)
	}
	b.setACLs(seesGroup)
	if r, code := user.reported(); code != kafka.None || len(r.Partitions) != 0 || r.State != group.CaughtUp {
		t.Errorf("with a right on the group alone: %v, %+v", code, r)
	}
}
