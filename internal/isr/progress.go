package isr

import "strandline.dev/internal/kafka"

// progress is what the leader knows about one replica in this epoch. NoOffset means "nothing yet".
type progress struct {
	node kafka.NodeID
	// verified is the largest offset the replica fetched at and was found free of divergence: below it its log is a copy of
	// ours. It says nothing about what is on disk.
	verified kafka.Offset
	// stored is the last end the replica reported as stored by the topic's flush policy. It says nothing about whether those
	// bytes are ours.
	stored kafka.Offset
	// most is the largest value counted so far; falling below it means that bytes were lost.
	most kafka.Offset
}

func newProgress(n kafka.NodeID) progress {
	return progress{node: n, verified: kafka.NoOffset, stored: kafka.NoOffset, most: kafka.NoOffset}
}

// counted is the end up to which the replica surely stores our records: the smaller of verified and stored.
func (r *progress) counted() kafka.Offset { return min(r.verified, r.stored) }

// own sets the leader's own stored end: its log needs no verification against itself.
func (r *progress) own(end kafka.Offset) {
	r.verified, r.stored = end, end
	r.most = max(r.most, end)
}

// fetched takes in a verified fetch offset. It reports true when the replica fetches below what it counted for.
func (r *progress) fetched(at kafka.Offset) (lost bool) {
	if at < r.most {
		r.verified = at // counted falls with it, so the watermark waits for the replica or for its removal
		return true
	}
	r.verified = max(r.verified, at)
	r.most = max(r.most, r.counted())
	return false
}

// reported takes in a stored end. It reports true when the end is below what the replica counted for.
func (r *progress) reported(end kafka.Offset) (lost bool) {
	lost = end < r.most
	r.stored = end
	r.most = max(r.most, r.counted())
	return lost
}
