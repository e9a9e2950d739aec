package server

import (
	"bytes"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/wire"
)

// answersVary are the APIs whose answers differ from one time to the next by themselves.
var answersVary = []int16{wire.KeyJoinGroup, wire.KeyInitProducerID, wire.KeyDescribeQuorum}

// about is a request of an API that names one topic, by name or, in versions that have them, by id.
func about(key int16, name string, id kafka.TopicID, byID bool, b *testBroker) kmsg.Request {
	req := request(key, name, id, b.newBatch("x"))
	switch r := req.(type) {
	case *kmsg.DeleteTopicsRequest:
		r.TopicNames, r.Topics[0].Topic = []string{name}, &name
		if byID {
			r.TopicNames, r.Topics[0].Topic, r.Topics[0].TopicID = nil, nil, id
		}
	case *kmsg.MetadataRequest:
		if byID {
			r.Topics[0].Topic, r.Topics[0].TopicID = nil, id
		}
	}
	return req
}

// TestSecurity2_UnseenAnswersAreThoseOfAbsent: whatever is asked about a topic that the caller may not see, byte for byte it is answered as about one that
// does not exist, by every API at its first and last version, to somebody without any right, and to somebody with every right on another topic and
// on every group. Ids are no secrets, as in Kafka: asked by one, an API may say that the right is missing, and never the name.
func TestSecurity2_UnseenAnswersAreThoseOfAbsent(t *testing.T) {
	b := newGuardedBroker(t, "user")
	super, user := b.loggedInAs("super"), b.loggedInAs("user")
	findCoordinator(super)
	id := super.create("secret", 1)
	super.create("public", 1)
	none := kafka.TopicID{1, 2, 3}
	var elsewhere []metadata.ACL
	for _, op := range []string{"Read", "Write", "Create", "Delete", "Alter", "Describe", "DescribeConfigs", "AlterConfigs"} {
		elsewhere = append(elsewhere, right(t, "user", op+":Topic", "public", kmsg.ACLPermissionTypeAllow))
	}
	for _, op := range []string{"Read", "Describe", "Delete"} {
		elsewhere = append(elsewhere, right(t, "user", op+":Group", "*", kmsg.ACLPermissionTypeAllow))
	}
	for what, acls := range map[string][]metadata.ACL{"no right": nil, "rights elsewhere": elsewhere} {
		b.setACLs(acls...)
		for _, a := range served() {
			if a.Key == wire.KeySaslHandshake || a.Key == wire.KeySaslAuthenticate || slices.Contains(answersVary, a.Key) {
				continue
			}
			for _, v := range slices.Compact([]int16{a.Min, a.Max}) {
				for _, byID := range []bool{false, true} {
					answer := func(name string, id kafka.TopicID) []byte {
						return ask[kmsg.Response](user, withVersion(about(a.Key, name, id, byID, b), v)).AppendTo(nil)
					}
					if byID && v < 10 && (a.Key == wire.KeyMetadata || a.Key == wire.KeyDeleteTopics) {
						continue // no ids there
					}
					absent, unseen := answer("absent", none), answer("secret", id)
					if bytes.Contains(unseen, id[:]) && !bytes.Contains(unseen, []byte("secret")) {
						continue
					}
					unseen = bytes.ReplaceAll(bytes.ReplaceAll(unseen, []byte("secret"), []byte("absent")), id[:], none[:])
					if again := answer("absent", none); !bytes.Equal(absent, again) {
						t.Errorf("%s v%d, %s: two answers about what is absent differ:\n%q\n%q", a.Name, v, what, absent, again)
					} else if !bytes.Equal(absent, unseen) {
						t.Errorf("%s v%d, %s, by id %v: absent and unseen differ:\n%q\n%q", a.Name, v, what, byID, absent, unseen)
					}
				}
			}
		}
	}
}
