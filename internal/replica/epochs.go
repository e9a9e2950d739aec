package replica

import "strandline.dev/internal/kafka"

// EpochEnd returns the largest epoch up to the given one that has records here, and where they end; {NoEpoch, NoOffset} when
// there is none. Clients find out with it whether their log parts from the leader's. An epoch above all that this log knows is
// one whose records were lost here, so there is no end to tell: an answer would hide the loss from a consumer below it.
func (h *Host) EpochEnd(tp kafka.TopicPartition, epoch, current kafka.LeaderEpoch) (kafka.EpochEnd, error) {
	none := kafka.EpochEnd{Epoch: kafka.NoEpoch, End: kafka.NoOffset}
	p := h.partition(tp)
	if p == nil {
		return none, h.absent()
	}
	var leader kafka.NodeID
	var now kafka.LeaderEpoch
	v, err := p.look(current, &leader, &now)
	if err != nil {
		return none, err
	}
	if epoch < 0 || epoch > v.log.LatestEpoch() {
		return none, nil
	}
	return v.log.EpochEndFor(epoch), nil
}
