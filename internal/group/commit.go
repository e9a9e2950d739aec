package group

import (
	"math"

	"strandline.dev/internal/kafka"
)

// commit decides on an OffsetCommit: one verdict for the group, then one for each partition.
func (x *step) commit(ev *CommitOffsets) {
	g, code := x.mayCommit(ev)
	if code == kafka.None && g == nil {
		if g = x.create(ev.Group); g == nil {
			code = kafka.PolicyViolation
		}
	}
	r := &CommitReply{Topics: make([]TopicCodes, len(ev.Topics))}
	isStored := false
	for i := range ev.Topics {
		t, isKnown := &ev.Topics[i], false
		codes := TopicCodes{Name: t.Name, ID: t.ID, Partitions: make([]PartitionCode, len(t.Partitions))}
		for j := range t.Partitions {
			p := &t.Partitions[j]
			verdict := code
			if verdict == kafka.None {
				verdict = x.checkCommit(t, p)
			}
			if verdict == kafka.None && ev.Generation >= 0 && g.consumer.isThere() {
				verdict = g.consumer.mayCommitOf(ev, kafka.TopicPartition{Topic: t.ID, Partition: p.Partition})
			}
			if p.Refused != kafka.None {
				verdict = p.Refused
			}
			if verdict == kafka.None {
				isStored, isKnown = true, true
				x.record(g, offsetRecord(g.id, t, p, x.stampMs()))
			}
			codes.Partitions[j] = PartitionCode{Partition: p.Partition, Code: verdict}
		}
		if r.Topics[i] = codes; isKnown {
			x.noteWidth(t)
		}
	}
	if !isStored {
		x.reply(ev.Token, r)
		return
	}
	x.replyAfterCommit(ev.Token, r)
	if !g.isActive() && !g.expiry.isArmed() {
		x.watchExpiry(g)
	}
}

// mayCommit says whether the sender may move offsets of the group (I7, P31). Without a generation it may while the group has no
// members: the tools that reset offsets, and consumers that assign themselves (O7); otherwise they are members that it does not know. A nil
// group with no error is one to create.
func (x *step) mayCommit(ev *CommitOffsets) (*group, kafka.ErrorCode) {
	isMember := ev.Generation >= 0 || ev.MemberID != "" || ev.InstanceID != ""
	if code := checkGroupID(ev.Group); code != kafka.None && (isMember || ev.Group != "") { // old simple consumers have no group id
		return nil, code
	}
	g := x.find(ev.Group)
	switch {
	case g == nil && ev.Generation < 0:
		return nil, kafka.None
	case g == nil && ev.KnowsGroupIDNotFound:
		return nil, kafka.GroupIDNotFound
	case g == nil:
		return nil, kafka.IllegalGeneration
	case !g.isActive() && ev.Generation < 0:
		return g, kafka.None
	case g.consumer.isThere():
		code := g.consumer.mayCommit(ev)
		if m := g.consumer.members[ev.MemberID]; code == kafka.None && m.classic != nil {
			x.heard(g, m)
		}
		return g, code
	}
	m, code := g.classic.lookupIn(ev.MemberID, ev.InstanceID, ev.Generation)
	if code != kafka.None {
		return nil, code
	}
	if g.classic.phase == completing {
		// It knows the new generation and not yet what it owns in it.
		return nil, kafka.RebalanceInProgress
	}
	x.refresh(m)
	return g, kafka.None
}

// checkCommit is the verdict on one partition (K49). Offset -1 is what "no offset" is answered with, so it cannot be stored.
func (x *step) checkCommit(t *CommitTopic, p *CommitPartition) kafka.ErrorCode {
	switch {
	case len(t.Name) > nameBytesMax || p.Partition < 0:
		return kafka.UnknownTopicOrPartition
	case len(p.Metadata) > x.cfg.MetadataMax:
		return kafka.OffsetMetadataTooLarge
	case p.Offset < 0 || p.Offset == math.MaxInt64:
		return kafka.InvalidRequest
	}
	return kafka.None
}
