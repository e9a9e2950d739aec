package isr

import (
	"time"

	"strandline.dev/internal/kafka"
)

// Origin says who speaks: a process of a replica, about which leader epoch, and when in the order of what it said.
type Origin struct {
	Node kafka.NodeID
	// Broker is the registration of the process that speaks.
	Broker kafka.BrokerEpoch
	// Epoch is the leader epoch that the replica follows.
	Epoch kafka.LeaderEpoch
	// Sequence rises with each word of that process about this partition. Fetches and reports travel on different goroutines, so an
	// older one may come later; taken for news it would look like lost bytes.
	Sequence uint64
}

// noBroker stands for "no process of this replica has spoken in this epoch".
const noBroker kafka.BrokerEpoch = -1

// progress is what the leader knows about one replica in this epoch. NoOffset means "nothing yet".
type progress struct {
	node kafka.NodeID
	// broker is the registration of the process that the rest is about.
	broker kafka.BrokerEpoch
	// member says that the committed ISR has the replica.
	member bool
	// verified is the offset the replica fetched at and was found free of divergence: below it its log is a copy of ours. It says
	// nothing about what is on disk.
	verified kafka.Offset
	// stored is the last end the replica reported as stored by the topic's flush policy. It says nothing about whether those
	// bytes are ours.
	stored kafka.Offset
	// start is the log start that the replica reported.
	start kafka.Offset
	// most is the largest value counted since the process began to speak or was found to have lost bytes; falling below it means
	// that bytes were lost.
	most kafka.Offset
	// lost says that bytes that had counted are gone: until the controller has taken the replica out of ISR and ELR it is in
	// sync with nothing, however fast it catches up.
	lost bool
	// heardOf is when anything was last heard from the replica's node; zero means that nobody has said.
	heardOf time.Time
	// fetchedAs and reportedAs are the last sequences taken in.
	fetchedAs, reportedAs uint64
}

func newProgress(n kafka.NodeID) progress {
	return progress{node: n, broker: noBroker, verified: kafka.NoOffset, stored: kafka.NoOffset, start: kafka.NoOffset, most: kafka.NoOffset}
}

// counted is the end up to which the replica surely stores our records: the smaller of verified and stored.
func (r *progress) counted() kafka.Offset { return min(r.verified, r.stored) }

// own sets the leader's own stored end: its log needs no verification against itself.
func (r *progress) own(end kafka.Offset) {
	r.verified, r.stored = end, end
	r.most = max(r.most, end)
}

// heard says whether the process that speaks is the one to be listened to. A newer registration begins from nothing: the controller
// has judged what may have been lost between the two (I4), so a smaller end is no news. What an older one said before it died is none.
func (r *progress) heard(broker kafka.BrokerEpoch) bool {
	if broker > r.broker {
		member, lost, heardOf := r.member, r.lost, r.heardOf
		*r = newProgress(r.node)
		r.broker, r.member, r.lost, r.heardOf = broker, member, lost, heardOf
	}
	return broker == r.broker
}

// fetched takes in a verified fetch offset. It reports true when the replica fetches below what it counted for.
func (r *progress) fetched(sequence uint64, at kafka.Offset) (lost bool) {
	if sequence <= r.fetchedAs {
		return false
	}
	r.fetchedAs = sequence
	if at < r.most {
		r.verified = at // counted falls with it, so the watermark waits for the replica or for its removal
		r.lose()
		return true
	}
	r.verified = max(r.verified, at)
	r.most = max(r.most, r.counted())
	return false
}

// reported takes in a stored end and a log start. It reports true when the end is below what the replica counted for.
func (r *progress) reported(sequence uint64, end, start kafka.Offset) (lost bool) {
	if sequence <= r.reportedAs {
		return false
	}
	r.reportedAs = sequence
	r.stored, r.start = end, start
	if end < r.most {
		r.lose()
		return true
	}
	r.most = max(r.most, r.counted())
	return false
}

func (r *progress) lose() { r.lost, r.most = true, r.counted() }
