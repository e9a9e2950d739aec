package server

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// deleteIf deletes a topic if its version is the one in the tag, and returns the answer.
func (c *testClient) deleteIf(topic string, tag []byte) *kmsg.DeleteTopicsResponseTopic {
	c.t.Helper()
	req := withVersion(kmsg.NewPtrDeleteTopicsRequest(), 6)
	rt := kmsg.NewDeleteTopicsRequestTopic()
	rt.Topic = &topic
	if tag != nil {
		rt.UnknownTags.Set(wire.TagDeletion, tag)
	}
	req.Topics = append(req.Topics, rt)
	return &ask[*kmsg.DeleteTopicsResponse](c, req).Topics[0]
}

// lifeOf is the version of a topic as Metadata tells it, and the names in the trash.
func (c *testClient) lifeOf(topic string) (life wire.TopicLife, trash []string) {
	c.t.Helper()
	req := withVersion(kmsg.NewPtrMetadataRequest(), 12)
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &topic
	req.Topics = append(req.Topics, rt)
	req.UnknownTags.Set(wire.TagTopicLife, []byte{wire.TellLife | wire.TellTrash})
	resp := ask[*kmsg.MetadataResponse](c, req)
	if v, there := wire.Tagged(&resp.Topics[0].UnknownTags, wire.TagTopicLife); there {
		var err error
		life, err = wire.DecodeTopicLife(v)
		must(c.t, err)
	}
	v, _ := wire.Tagged(&resp.UnknownTags, wire.TagTrash)
	all, err := wire.DecodeTrash(v)
	must(c.t, err)
	for _, t := range all.Topics {
		trash = append(trash, t.Name)
	}
	return life, trash
}

func newRestore(as string, from wire.Restoration) *kmsg.CreateTopicsRequest {
	req := newCreate(as, 0)
	var e wire.Encoder
	from.Append(&e)
	req.Topics[0].UnknownTags.Set(wire.TagRestoration, e.B)
	return req
}

// TestR9_DeletionWithAVersion: only the version that is there deletes, and a condition that cannot be read deletes nothing. Who sends no condition is
// told nothing that Kafka's answer does not have.
func TestR9_DeletionWithAVersion(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("orders", 1)
	if life, _ := c.lifeOf("orders"); life.Version != 1 || life.Owner == "" || life.CreatedMs != b.wall.Now().UnixMilli() {
		t.Errorf("R8: %+v", life)
	}
	for _, one := range []struct {
		tag  []byte
		want kafka.ErrorCode
	}{
		{wire.NumberTag(7), kafka.InvalidUpdateVersion}, {wire.NumberTag(-1), kafka.InvalidRequest}, {[]byte{1}, kafka.InvalidRequest},
		{[]byte{}, kafka.InvalidRequest}, {wire.NumberTag(1), kafka.None}, {nil, kafka.UnknownTopicOrPartition},
	} {
		if got := c.deleteIf("orders", one.tag); kafka.ErrorCode(got.ErrorCode) != one.want {
			t.Errorf("%x: %v, want %v", one.tag, kafka.ErrorCode(got.ErrorCode), one.want)
		}
	}
	c.create("plain", 1)
	if got := c.deleteIf("plain", nil); got.ErrorCode != 0 || got.UnknownTags.Len() != 0 {
		t.Errorf("%v, %d tags", kafka.ErrorCode(got.ErrorCode), got.UnknownTags.Len())
	}
	c.create("dated", 1, "strandline.delete.recovery.ms", "60000")
	until, _ := wire.Tagged(&c.deleteIf("dated", wire.NumberTag(0)).UnknownTags, wire.TagDeletion)
	if got, err := wire.ReadNumberTag(until); err != nil || got != b.wall.Now().UnixMilli()+60_000 {
		t.Errorf("can be restored until %d, %v", got, err)
	}
}

// TestR11_P41_RestoredOnTheWire: a deleted topic refuses publishes, comes back with its id, records and configs, and is never served under the name
// of a newer one.
func TestR11_P41_RestoredOnTheWire(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	first := c.create("orders", 1, "retention.ms", "86400001")
	c.publish(newProduce("orders", 0, b.newBatch("old")))
	c.deleteIf("orders", wire.NumberTag(1))
	if code := kafka.ErrorCode(c.publish(newProduce("orders", 0, b.newBatch("late"))).ErrorCode); code != kafka.UnknownTopicOrPartition {
		t.Errorf("R10: a publish to a deleted topic: %v", code)
	}
	second := c.create("orders", 1)
	if first == second {
		t.Fatal("C079: an id is used twice")
	}
	restore := func(req *kmsg.CreateTopicsRequest) kmsg.CreateTopicsResponseTopic {
		return ask[*kmsg.CreateTopicsResponse](c, req).Topics[0]
	}
	trial, grown := newRestore("back", wire.Restoration{ID: first}), newRestore("back", wire.Restoration{ID: first})
	trial.ValidateOnly, grown.Topics[0].NumPartitions = true, 3
	unreadable := newRestore("back", wire.Restoration{})
	for name, one := range map[string]struct {
		req  *kmsg.CreateTopicsRequest
		want kafka.ErrorCode
	}{
		"a taken name":      {newRestore("orders", wire.Restoration{ID: first}), kafka.TopicAlreadyExists},
		"an unknown id":     {newRestore("back", wire.Restoration{ID: kafka.TopicID{9}}), kafka.UnknownTopicID},
		"a living topic":    {newRestore("back", wire.Restoration{ID: second}), kafka.UnknownTopicID},
		"an unknown name":   {newRestore("back", wire.Restoration{Name: "none"}), kafka.UnknownTopicOrPartition},
		"the broker's name": {newRestore("__consumer_offsets", wire.Restoration{ID: first}), kafka.InvalidTopicException},
		"no topic":          {unreadable, kafka.InvalidRequest},
		"on trial":          {trial, kafka.InvalidRequest},
		"with partitions":   {grown, kafka.InvalidRequest},
		"without the tag":   {newCreate("back", 0), kafka.InvalidPartitions},
	} {
		if got := restore(one.req); kafka.ErrorCode(got.ErrorCode) != one.want {
			t.Errorf("%s: %v, want %v", name, kafka.ErrorCode(got.ErrorCode), one.want)
		}
	}
	if _, trash := c.lifeOf("orders"); !slices.Equal(trash, []string{"orders"}) {
		t.Errorf("in the trash: %v", trash)
	}
	got := restore(newRestore("back", wire.Restoration{Name: "orders"}))
	if got.ErrorCode != 0 || got.TopicID != first || got.NumPartitions != 1 {
		t.Fatalf("%v: %+v", kafka.ErrorCode(got.ErrorCode), got)
	}
	if life, trash := c.lifeOf("back"); life.Version != 3 || len(trash) != 0 {
		t.Errorf("version %d, in the trash: %v", life.Version, trash)
	}
	for topic, want := range map[string][]string{"back": {"old"}, "orders": nil} {
		f := ask[*kmsg.FetchResponse](c, newFetch(topic, 0, 0)).Topics[0].Partitions[0]
		if got := values(t, f.RecordBatches); f.ErrorCode != 0 || !slices.Equal(got, want) {
			t.Errorf("P41: %s has %q (%v), want %q", topic, got, kafka.ErrorCode(f.ErrorCode), want)
		}
	}
	if v := c.config("back", "retention.ms").Value; str(v) != "86400001" {
		t.Errorf("retention.ms came back as %s", str(v))
	}
}

// TestR11_R149_RestoringTakesTheRightToDelete: who may create topics may not thereby bring back what others have deleted, nor see it in the trash.
func TestR11_R149_RestoringTakesTheRightToDelete(t *testing.T) {
	b := newGuardedBroker(t, "ann")
	super := b.loggedInAs("super")
	id := super.create("orders", 1)
	super.deleteIf("orders", nil)
	create := right(t, "ann", "Create:Topic", "*", kmsg.ACLPermissionTypeAllow)
	for _, one := range []struct {
		name  string
		acls  []metadata.ACL
		trash []string
		want  kafka.ErrorCode
	}{
		{"create", []metadata.ACL{create}, nil, kafka.TopicAuthorizationFailed},
		{"create, delete another", []metadata.ACL{create, right(t, "ann", "Delete:Topic", "back", kmsg.ACLPermissionTypeAllow)}, nil, kafka.TopicAuthorizationFailed},
		{"delete", []metadata.ACL{right(t, "ann", "Delete:Topic", "orders", kmsg.ACLPermissionTypeAllow)}, []string{"orders"}, kafka.TopicAuthorizationFailed},
		{"both", []metadata.ACL{create, right(t, "ann", "Delete:Topic", "orders", kmsg.ACLPermissionTypeAllow)}, []string{"orders"}, kafka.None},
	} {
		b.setACLs(one.acls...)
		c := b.loggedInAs("ann")
		if _, trash := c.lifeOf("orders"); !slices.Equal(trash, one.trash) {
			t.Errorf("%s: sees %v in the trash, want %v", one.name, trash, one.trash)
		}
		for _, from := range []wire.Restoration{{ID: id}, {Name: "orders"}} {
			if one.want == kafka.None && from.ID.IsZero() {
				continue // the first one has it
			}
			got := ask[*kmsg.CreateTopicsResponse](c, newRestore("back", from)).Topics[0]
			if kafka.ErrorCode(got.ErrorCode) != one.want {
				t.Errorf("%s, %+v: %v %s, want %v", one.name, from, kafka.ErrorCode(got.ErrorCode), str(got.ErrorMessage), one.want)
			}
		}
	}
}
