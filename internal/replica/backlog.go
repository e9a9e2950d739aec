package replica

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
)

// BacklogItem asks what lies behind an offset of a partition: what a group that has committed it has still to read. NoOffset stands for
// the start. Leader is whom to ask.
type BacklogItem struct {
	TP     kafka.TopicPartition
	Leader kafka.NodeID
	Offset kafka.Offset
}

// Backlog is the leader's answer, in the place of its item. With an Err nothing else is known.
type Backlog struct {
	// Start and End bound what consumers may read: End is the high watermark.
	Start, End kafka.Offset
	// Unread says whether a record is between the offset and End; where compaction has removed all, there is none. Oldest is the time since
	// the first of them was appended.
	Unread bool
	Oldest time.Duration
	// LossIn is when retention will have passed the first unread record; Expires is false when it never will.
	LossIn  time.Duration
	Expires bool
	Err     error
}

// errBacklogUnknown: the leader of the partition is not known, did not answer in time, or is too new to say.
var errBacklogUnknown = errors.New("the leader does not say")

// Backlogs asks the leaders, each once for every backlogItemsMax partitions and all at the same time, for at most backlogWaitMax.
func (h *Host) Backlogs(ctx context.Context, items []BacklogItem) []Backlog {
	ctx, cancel := context.WithTimeout(ctx, backlogWaitMax)
	defer cancel()
	out := make([]Backlog, len(items))
	byLeader := map[kafka.NodeID][]int{}
	for i := range items {
		byLeader[items[i].Leader] = append(byLeader[items[i].Leader], i)
	}
	calls := 0
	done := make(chan struct{}, len(items))
	for leader, places := range byLeader {
		for places := range slices.Chunk(places, backlogItemsMax) {
			calls++
			go func() {
				h.askBacklogs(ctx, leader, items, places, out)
				done <- struct{}{}
			}()
		}
	}
	for range calls {
		<-done
	}
	return out
}

// askBacklogs asks one leader about the items at the places.
func (h *Host) askBacklogs(ctx context.Context, leader kafka.NodeID, items []BacklogItem, places []int, out []Backlog) {
	asked := make([]backlogEntry, len(places))
	for n, i := range places {
		asked[n] = backlogEntry{items[i].TP, items[i].Offset}
	}
	var told backlogAnswer
	var err error
	switch {
	case leader == h.repl.node:
		told.parts = h.backlogsHere(asked)
	case leader == kafka.NoNode:
		err = fmt.Errorf("%w: the partition has no leader", errBacklogUnknown)
	case h.repl.peers == nil:
		err = fmt.Errorf("%w: node %v is not known", errBacklogUnknown, leader)
	default:
		err = h.repl.peers.Call(ctx, leader, &backlogQuestion{asked}, &told)
	}
	if err == nil && len(told.parts) != len(asked) {
		err = fmt.Errorf("%d answers to %d questions", len(told.parts), len(asked))
	}
	for n, i := range places {
		if err != nil {
			out[i] = Backlog{Start: kafka.NoOffset, End: kafka.NoOffset, Err: fmt.Errorf("%w: %w", errBacklogUnknown, err)}
			continue
		}
		out[i] = told.parts[n].backlog(leader)
	}
}

// backlogsHere answers for the partitions that this node leads.
func (h *Host) backlogsHere(asked []backlogEntry) []toldBacklog {
	wall := h.machine.Wall.Now().Round(0)
	out := make([]toldBacklog, len(asked))
	for i, a := range asked {
		out[i] = noBacklog
		if p := h.partition(a.tp); p != nil {
			out[i] = p.backlog(a.offset, wall)
		}
	}
	return out
}

func (p *partition) backlog(offset kafka.Offset, wall time.Time) toldBacklog {
	var leader kafka.NodeID
	var epoch kafka.LeaderEpoch
	v, err := p.look(kafka.NoEpoch, &leader, &epoch)
	if err != nil || !v.settled {
		return noBacklog // I2: the watermark of a new leader is not to be shown yet
	}
	p.mu.Lock()
	topic := p.mu.topic
	p.unlock()
	t := toldBacklog{known: true, start: v.log.Start(), end: v.hw, oldestMs: -1, lossMs: -1}
	at, ok, err := v.log.AppendTimeAt(max(offset, t.start), v.hw)
	if err != nil {
		p.env.log.Warn("the age of a record could not be found", "partition", p.tp.String(), "offset", offset, "err", p.readError(err))
		return noBacklog
	}
	if ok {
		t.oldestMs = max(wall.Sub(at), 0).Milliseconds()
	}
	switch {
	case offset != kafka.NoOffset && offset < t.start:
		t.lossMs = 0
	case ok && slices.Contains(topic.CleanupPolicy, "delete"):
		if in, expires := v.log.LossIn(max(offset, t.start), retentionPolicy(topic), wall); expires {
			t.lossMs = in.Milliseconds()
		}
	}
	return t
}

// serveBacklogs answers other nodes.
func (h *Host) serveBacklogs(p *peer.Peers) {
	p.HandleRequest(peer.KindBacklog, func() peer.Message { return &backlogQuestion{} }, func(_ context.Context, _ peer.Identity, m peer.Message) (peer.Message, error) {
		return &backlogAnswer{h.backlogsHere(m.(*backlogQuestion).parts)}, nil
	})
}
