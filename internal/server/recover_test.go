package server

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/quorum"
	"strandline.dev/internal/wire"
)

// I4: a partition whose only replica was damaged has no leader until an operator says so, with the tag that only our own command sends; the audit trail has both
// what was refused and what was elected, by whom.
func TestI4_RecoveryIsToldAndElectedOnlyWithItsTag(t *testing.T) {
	trail := &testTrail{}
	b := newTestBroker(t, testOptions{audit: trail})
	c := b.dial()
	id := c.create("orders", 2)
	trail.take(true)
	c.publish(newProduce("orders", 0, b.newBatch("x")))
	tp := kafka.TopicPartition{Topic: id}
	epoch := b.quorum.Image().Broker(1).Epoch
	_, version, err := b.control.Submit(t.Context(), metadata.ReportDamage{Node: 1, Epoch: epoch, Damaged: []metadata.DamagedReplica{{TP: tp, LeaderEpoch: math.MaxInt32}}})
	must(t, err)
	must(t, b.host.WaitApplied(t.Context(), version))
	leader := func() kafka.NodeID { return b.quorum.Image().Topic("orders").Partitions[0].Leader }
	answer := func(mode byte, partitions ...int32) string {
		req := newElect(electUnclean, "orders", partitions...)
		if partitions == nil {
			req.Topics = nil
		}
		if mode != 0 {
			req.UnknownTags.Set(recoverTag, []byte{mode})
		}
		resp := ask[*kmsg.ElectLeadersResponse](c, req)
		out := kafka.ErrorCode(resp.ErrorCode).String()
		for _, rt := range resp.Topics {
			for _, p := range rt.Partitions {
				out += fmt.Sprintf(" %s-%d:%v%s", rt.Topic, p.Partition, kafka.ErrorCode(p.ErrorCode), toldText(t, p.UnknownTags))
			}
		}
		return out
	}
	const refused = "ElectLeaders Topic:orders by User:ANONYMOUS: orders-0: ELIGIBLE_LEADERS_NOT_AVAILABLE no replica that is up is sure to have every acknowledged record, " +
		"and there is no unclean election: another one never leads"
	for _, one := range []struct {
		name       string
		mode       byte
		partitions []int32
		want       string
		leader     kafka.NodeID
		audited    string // the entry of the audit trail (R108)
	}{
		{"Kafka's unclean election", 0, []int32{0}, "NONE orders-0:ELIGIBLE_LEADERS_NOT_AVAILABLE", kafka.NoNode, refused},
		{"a tag from the future", 9, []int32{0}, "NONE orders-0:ELIGIBLE_LEADERS_NOT_AVAILABLE", kafka.NoNode, refused},
		{"shown", recoverShow, []int32{0, 1, 7}, "NONE orders-0:NONE leader=-1 1:0:1 orders-1:ELECTION_NOT_NEEDED leader=1 1:0:0 orders-7:UNKNOWN_TOPIC_OR_PARTITION", kafka.NoNode, ""},
		{"all shown", recoverShow, nil, "NONE orders-0:NONE leader=-1 1:0:1", kafka.NoNode, ""},
		{"elected", recoverWhole, nil, "NONE orders-0:NONE leader=1 1:0:1", 1, "RecoverPartitions Topic:orders by User:ANONYMOUS: orders-0: the longest of [{1 0 1}]; acknowledged records may be lost"},
		{"nothing left", recoverElect, nil, "NONE", 1, ""},
	} {
		if got := answer(one.mode, one.partitions...); got != one.want || leader() != one.leader {
			t.Errorf("%s: %s, leader %v\nwant %s, leader %v", one.name, got, leader(), one.want, one.leader)
		}
		audited := ""
		for _, ev := range trail.take(true) {
			audited += fmt.Sprintf("%s %s by %v: %s%s", ev.API, ev.Resource, ev.Principal, ev.After, ev.Outcome)
		}
		if audited != one.audited {
			t.Errorf("%s: the audit trail has %q, want %q", one.name, audited, one.audited)
		}
	}
}

// toldText reads the tag of an answer's partition.
func toldText(t *testing.T, tags kmsg.Tags) string {
	out := ""
	tags.Each(func(tag uint32, v []byte) {
		if tag != recoverTag {
			return
		}
		d := wire.NewDecoder(v)
		d.ExpectHeader(recoverTag, 0)
		out = fmt.Sprintf(" leader=%d", d.Int32())
		for _, end := range wire.ReadArray(d, 16, func(d *wire.Decoder) string { return fmt.Sprintf(" %d:%d:%d", d.Int32(), d.Int32(), d.Int64()) }) {
			out += end
		}
		d.Tags(nil)
		must(t, d.Done())
	})
	return out
}

// fakeVoters answers as a quorum of several nodes would.
type fakeVoters struct {
	err   error
	calls []string
}

func (f *fakeVoters) AddVoter(_ context.Context, n kafka.NodeID) error {
	f.calls = append(f.calls, fmt.Sprintf("add %v", n))
	return f.err
}

func (f *fakeVoters) RemoveVoter(_ context.Context, n kafka.NodeID) error {
	f.calls = append(f.calls, fmt.Sprintf("remove %v", n))
	return f.err
}

func TestRaftVoters_AreChangedByTheQuorumAndRefusedByName(t *testing.T) {
	voters := &fakeVoters{}
	b := newTestBroker(t, testOptions{voters: voters})
	c := b.dial()
	add := func(change func(*kmsg.AddRaftVoterRequest)) kafka.ErrorCode {
		req := kmsg.NewPtrAddRaftVoterRequest()
		req.Version, req.VoterID = 1, 2
		change(req)
		resp := ask[*kmsg.AddRaftVoterResponse](c, req)
		if (resp.ErrorCode == 0) != (str(resp.ErrorMessage) == "") {
			t.Errorf("code %d with message %q", resp.ErrorCode, str(resp.ErrorMessage))
		}
		return kafka.ErrorCode(resp.ErrorCode)
	}
	own := b.quorum.Image().ClusterID()
	if code := add(func(r *kmsg.AddRaftVoterRequest) { r.ClusterID = &own }); code != kafka.None {
		t.Errorf("added: %v", code)
	}
	if code := add(func(r *kmsg.AddRaftVoterRequest) { r.ClusterID = kmsg.StringPtr("another") }); code != kafka.InconsistentClusterID {
		t.Errorf("another cluster: %v", code)
	}
	if code := add(func(r *kmsg.AddRaftVoterRequest) { r.VoterID, r.VoterDirectoryID = 1, [16]byte{1} }); code != kafka.InvalidRequest {
		t.Errorf("another directory: %v", code)
	}
	voters.err = fmt.Errorf("%w: node 2 is not registered", quorum.ErrMembership)
	if code := add(func(*kmsg.AddRaftVoterRequest) {}); code != kafka.InvalidRequest {
		t.Errorf("refused: %v", code)
	}
	voters.err = quorum.ErrNoLeader
	remove := kmsg.NewPtrRemoveRaftVoterRequest()
	remove.VoterID = 3
	if code := kafka.ErrorCode(ask[*kmsg.RemoveRaftVoterResponse](c, remove).ErrorCode); code != kafka.RequestTimedOut {
		t.Errorf("no leader: %v", code)
	}
	if got := fmt.Sprint(voters.calls); got != "[add 2 add 2 remove 3]" {
		t.Errorf("the quorum was asked %s", got)
	}
}

func TestUnregisterBroker_RefusalsTravel(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c := b.dial()
	c.create("orders", 1)
	req := kmsg.NewPtrUnregisterBrokerRequest()
	req.BrokerID = 1
	if resp := ask[*kmsg.UnregisterBrokerResponse](c, req); kafka.ErrorCode(resp.ErrorCode) != kafka.PolicyViolation || str(resp.ErrorMessage) == "" {
		t.Errorf("it holds a replica: %+v", resp)
	}
}
