package isr

import (
	"slices"

	"strandline.dev/internal/kafka"
)

// An ISR change is proposed to the controller with the epochs it was decided in, so that at most one of all that were proposed in a
// partition epoch is committed. From the proposal until a newer partition epoch is seen the leader does not know which: the change is
// open, and the watermark waits for the members of all of them (C018). No time-out, no refusal and no "not controller" ends that (I3),
// because an earlier copy of the proposal may still be under way. What ends it in time is proposing again, what is wanted by then; when
// that is the committed ISR, the controller commits it in a new partition epoch, and everything older is void.

// Proposal is an ISR change to be put to the controller.
type Proposal struct {
	LeaderEpoch    kafka.LeaderEpoch
	PartitionEpoch kafka.PartitionEpoch
	// ISR is the whole new list.
	ISR []Member
	// Lost are replicas outside it that have lost bytes and must not stay in the ELR.
	Lost []kafka.NodeID
	// Shrinks and Expands count who goes and who comes.
	Shrinks, Expands int
}

// Member is a replica in the registration in which it was found in sync.
type Member struct {
	Node   kafka.NodeID
	Broker kafka.BrokerEpoch
}

// wantsChange says whether Propose may have something to say.
func (l *Leader) wantsChange() bool {
	if l.proposed != nil {
		return true
	}
	for i := range l.replicas {
		r := &l.replicas[i]
		if r.member && l.lags(r) || l.sheds(r) || l.joins(r) {
			return true
		}
	}
	return false
}

// Propose decides which ISR there should be now, and opens the change; false means that the committed one is right and no change is
// open. registered gives the registration of a node that may join: up, and not about to stop. The caller puts the proposal to the
// controller and gives the resulting state to Update; when no answer comes, it calls Propose again.
func (l *Leader) Propose(registered func(kafka.NodeID) (kafka.BrokerEpoch, bool)) (Proposal, bool) {
	p := Proposal{LeaderEpoch: l.state.LeaderEpoch, PartitionEpoch: l.state.PartitionEpoch}
	isr := make([]kafka.NodeID, 0, len(l.replicas))
	for i := range l.replicas {
		r := &l.replicas[i]
		if l.sheds(r) {
			p.Lost = append(p.Lost, r.node)
		}
		switch {
		case r.node == l.self:
		case r.member && l.lags(r):
			p.Shrinks++
			continue
		case r.member:
		case l.joins(r):
			if at, ok := registered(r.node); !ok || at != r.broker {
				continue
			}
			p.Expands++
		default:
			continue
		}
		isr = append(isr, r.node)
		p.ISR = append(p.ISR, Member{Node: r.node, Broker: r.broker})
	}
	if l.proposed == nil && p.Shrinks+p.Expands+len(p.Lost) == 0 {
		return Proposal{}, false
	}
	l.open(isr)
	return p, true
}

// open notes a proposed ISR. From now until Update brings a newer partition epoch the watermark also waits for its members.
func (l *Leader) open(isr []kafka.NodeID) {
	if l.proposed == nil {
		l.proposed = make([]kafka.NodeID, 0, len(isr))
	}
	for _, n := range isr {
		if !slices.Contains(l.proposed, n) {
			// Members of an earlier, still open proposal stay: that one may yet be the one committed.
			l.proposed = append(l.proposed, n)
		}
	}
}

// Refused takes in that the controller does not take in whom the leader proposed: it knows something newer about that broker. That ends
// nothing; but until a newer partition epoch nobody is proposed to come in, so the next proposal gives the change up.
//
// A refusal that comes when no change is open any more says nothing: with nothing to give up, no newer partition epoch would ever end it.
func (l *Leader) Refused() { l.refused = l.proposed != nil }

// Open says whether a proposed change is open.
func (l *Leader) Open() bool { return l.proposed != nil }
