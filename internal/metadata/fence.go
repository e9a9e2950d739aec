package metadata

import (
	"strandline.dev/internal/kafka"
)

// fault is what may be wrong with the bytes of a replica that its node had reported as stored (I4).
type fault uint8

const (
	// sound: all that was reported is there.
	sound fault = iota
	// unsynced: the operating system was restarted under bytes that were reported before they were synced.
	unsynced
	// lost: damaged, or on another disk, or on a restored copy of the disk.
	lost
)

// departure is what a node's departure did.
type departure struct {
	possibleLoss []kafka.TopicPartition
	offline      []PartitionName
	elected      int
}

// depart takes a node out of the ISR of every partition, and out of ISR and ELR where its replica is not sound, and elects another leader where it
// led, in a new leader epoch whoever leads next (I3, I4).
func (d *decider) depart(node kafka.NodeID, faultOf func(kafka.TopicPartition) fault) departure {
	var out departure
	d.eachPartition(func(t *Topic, p int32, s kafka.PartitionState) {
		if !has(s.Replicas, node) {
			return
		}
		tp := kafka.TopicPartition{Topic: t.ID, Partition: p}
		name := PartitionName{Topic: t.Name, ID: t.ID, Partition: p}
		f := faultOf(tp)
		next := leaveISR(s, node, f)
		if f == unsynced && has(next.ELR, node) {
			out.possibleLoss = append(out.possibleLoss, tp)
		}
		led := s.Leader == node
		if led {
			d.elect(&next, node)
			if next.Leader != kafka.NoNode {
				out.elected++
			}
		}
		if led || has(s.ISR, node) || has(s.ELR, node) != has(next.ELR, node) || len(next.LastKnown) != len(s.LastKnown) {
			d.setPartition(t.ID, p, next)
		}
		if len(next.ISR)+len(next.ELR) == 0 && f != sound {
			out.offline = append(out.offline, name)
		}
	})
	return out
}

// leaveISR is the state without a node in its ISR. I4:
//   - a sound replica that leaves while the ISR falls below the effective minimum becomes an eligible leader: it has every record up to the high
//     watermark, which cannot advance without it;
//   - the only replica of a partition stays eligible after a restart of the operating system: waiting would bring nothing back (the caller counts
//     the possible loss);
//   - any other replica that may miss reported records is not eligible; when nobody is left, it is remembered for the operator.
func leaveISR(s kafka.PartitionState, node kafka.NodeID, f fault) kafka.PartitionState {
	inISR, eligible := has(s.ISR, node), has(s.ISR, node) || has(s.ELR, node)
	s.ISR = less(s.ISR, node)
	switch {
	case f == sound:
		if inISR && int32(len(s.ISR)) < s.EffectiveMinISR {
			s.ELR = more(s.ELR, node)
		}
	case f == unsynced && len(s.Replicas) == 1 && eligible:
		s.ELR = more(s.ELR, node)
	default:
		s.ELR = less(s.ELR, node)
		if eligible && (s.Leader == node || s.Leader == kafka.NoNode) { // elect forgets it again if there is somebody
			s.LastKnown = more(s.LastKnown, node)
		}
	}
	return s
}

// holder returns the broker if it is registered with the epoch.
func (d *decider) holder(node kafka.NodeID, epoch kafka.BrokerEpoch) (*Broker, Outcome) {
	b := d.Broker(node)
	switch {
	case b == nil:
		return nil, refused(kafka.BrokerIDNotRegistered, "broker %v is not registered", node)
	case b.Epoch != epoch: // I3: a deposed process changes nothing
		return nil, refused(kafka.StaleBrokerEpoch, "broker %v has epoch %d, not %d: another process has registered since", node, b.Epoch, epoch)
	}
	return b, Outcome{}
}

// ready unfences a broker, or takes back one that was to stop: it stays.
func (d *decider) ready(ev BrokerReady) BrokerChanged {
	b, no := d.holder(ev.Node, ev.Epoch)
	if !no.OK() {
		return BrokerChanged{Outcome: no}
	}
	if b.Fenced || b.Stopping {
		d.write(BrokerStateRecord{Node: b.ID, Epoch: b.Epoch})
	}
	return BrokerChanged{Elected: d.electLeaderless(b.ID), StillLeads: d.loads[b.ID].leaders}
}

// fence takes everything from a broker, or lets it hand over and go. The broker's own record comes last: each prefix of the records leaves the
// broker unfenced with fewer partitions, never fenced and leading.
func (d *decider) fence(ev FenceBroker) BrokerChanged {
	b, no := d.holder(ev.Node, ev.Epoch)
	if !no.OK() {
		return BrokerChanged{Outcome: no}
	}
	if ev.Stopping {
		return d.drain(b)
	}
	gone := d.depart(b.ID, func(kafka.TopicPartition) fault { return sound })
	if !b.Fenced {
		fenced := b.state()
		fenced.Fenced = true
		d.write(fenced)
	}
	return BrokerChanged{Elected: gone.elected, StillLeads: d.loads[b.ID].leaders}
}

// drain lets a broker stop.
func (d *decider) drain(b *Broker) BrokerChanged {
	if !b.Stopping {
		stopping := b.state()
		stopping.Stopping = true
		d.write(stopping)
	}
	elected := d.handOver(b.ID)
	return BrokerChanged{Elected: elected, StillLeads: d.loads[b.ID].leaders}
}

// handOver gives the leaderships of a broker that is to go to members of the ISR that are to stay. The rest stays with it: with nobody to take
// over, leading to the end is better than leading nothing.
func (d *decider) handOver(node kafka.NodeID) int {
	elected := 0
	d.eachPartition(func(t *Topic, p int32, s kafka.PartitionState) {
		if s.Leader != node {
			return
		}
		n := d.candidate(&s, s.ISR, node)
		if n == kafka.NoNode || d.leaving(n) {
			return
		}
		s.Leader, s.LeaderEpoch = n, s.LeaderEpoch+1
		d.setPartition(t.ID, p, s)
		elected++
	})
	return elected
}
