package group

import (
	"math"

	"strandline.dev/internal/kafka"
)

// seek decides on a SeekOffsets: an operator moves a group. It is refused while the group has members, by the state of this very step, so a
// group that became active after the operator had looked is safe (R50, O7). What is replaced is kept beside the offsets until the next
// seek, also where nothing was stored, so that an undo brings back exactly what was there; an undo is itself a seek, and a second one
// takes it back.
func (x *step) seek(ev *SeekOffsets) {
	r := &SeekReply{Code: checkGroupID(ev.Group)}
	g := x.find(ev.Group)
	switch {
	case r.Code != kafka.None:
	case g != nil && g.isActive():
		r.Code = kafka.NonEmptyGroup
	case ev.Undo && (g == nil || len(g.undo) == 0):
		r.Code = kafka.GroupIDNotFound
	case g == nil:
		if g = x.create(ev.Group); g == nil {
			r.Code = kafka.PolicyViolation
		}
	}
	if r.Code != kafka.None {
		x.reply(ev.Token, r)
		return
	}
	targets := map[topicPartition]committed{}
	if ev.Undo {
		for p, o := range sortedPartitions(g.undo) {
			if ev.MayMove != nil && !ev.MayMove(p.topic) {
				x.reply(ev.Token, &SeekReply{Code: kafka.TopicAuthorizationFailed})
				return
			}
			o.atMs = x.stampMs()
			targets[p] = o
		}
	} else if r.Code = x.seekTargets(ev, targets); r.Code != kafka.None {
		x.reply(ev.Token, r)
		return
	}
	x.replace(g, targets)
	r.Moved = len(targets)
	x.replyAfterCommit(ev.Token, r)
	if len(targets) > 0 {
		x.note(g, Note{Kind: OffsetsMoved, Why: moveReason(ev.Undo), Count: len(targets)})
	}
	if !g.isActive() && !g.expiry.isArmed() {
		x.watchExpiry(g)
	}
}

func moveReason(undo bool) string {
	if undo {
		return "the last seek was undone"
	}
	return "an operator's seek"
}

// seekTargets checks where to go: all partitions or none.
func (x *step) seekTargets(ev *SeekOffsets, targets map[topicPartition]committed) kafka.ErrorCode {
	for i := range ev.Topics {
		t := &ev.Topics[i]
		for _, p := range t.Partitions {
			key := topicPartition{t.Name, p.Partition}
			_, twice := targets[key]
			switch {
			case p.Refused != kafka.None:
				return p.Refused
			case twice, p.Partition < 0, p.Offset < 0, p.Offset == math.MaxInt64, len(t.Name) > nameBytesMax, len(targets) >= seekMax:
				return kafka.InvalidRequest
			case len(p.Metadata) > x.cfg.MetadataMax:
				return kafka.OffsetMetadataTooLarge
			}
			targets[key] = committed{offset: p.Offset, epoch: p.LeaderEpoch, metadata: p.Metadata, atMs: x.stampMs(), topic: t.ID}
		}
	}
	return kafka.None
}

// replace makes the records of a seek. Every prefix of them is a safe state: what a target replaces is kept before it is replaced.
func (x *step) replace(g *group, targets map[topicPartition]committed) {
	for p := range sortedPartitions(g.undo) {
		if _, again := targets[p]; !again {
			x.record(g, KV{Key: undoKey(g.id, p)})
		}
	}
	for p, target := range sortedPartitions(targets) {
		before, stored := g.offsets[p.topic][p.partition]
		if !stored {
			before = committed{offset: kafka.NoOffset, epoch: kafka.NoEpoch, topic: target.topic, atMs: target.atMs}
		}
		x.record(g, KV{Key: undoKey(g.id, p), Value: before.value()})
		if target.offset < 0 {
			x.record(g, offsetTombstone(g.id, p))
			continue
		}
		x.record(g, KV{Key: offsetKey(g.id, p), Value: target.value()})
	}
}

// dropUndo removes what a seek has kept.
func (x *step) dropUndo(g *group) {
	for p := range sortedPartitions(g.undo) {
		x.record(g, KV{Key: undoKey(g.id, p)})
	}
}
