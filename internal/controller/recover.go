package controller

import (
	"context"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// keepRecovered elects, under `dev` and on the active controller, leaders for partitions that have lost every candidate, once everybody is back.
func (l *Link) keepRecovered(ctx context.Context) {
	look := time.NewTicker(recoverEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
		if !l.cfg.Quorum.Leadership().Leading {
			continue
		}
		lost := Leaderless(l.cfg.Quorum.Image(), true)
		if len(lost) == 0 {
			continue
		}
		reply, _, err := l.Submit(ctx, metadata.RecoverPartitions{
			Principal: kafka.Principal{Type: "Node", Name: l.cfg.Node.String()}, Partitions: l.Ends(ctx, lost), Whole: true,
		})
		if err != nil {
			continue // the next look finds them again
		}
		for _, r := range reply.([]metadata.Recovered) {
			if r.OK() {
				l.cfg.Log.Warn("a leader was elected that may miss acknowledged records", "topic", r.Topic, "partition", r.Partition, "leader", r.Leader,
					"end", r.End)
			}
		}
	}
}

// Leaderless lists partitions without a leader and without anybody who can be elected, in topic order, at most endsMax; with back only those of which
// everybody who was last known to have every acknowledged record is up again.
func Leaderless(image *metadata.Image, back bool) []kafka.TopicPartition {
	isUp := func(n kafka.NodeID) bool { b := image.Broker(n); return b != nil && !b.Fenced }
	isDown := func(n kafka.NodeID) bool { return !isUp(n) }
	var out []kafka.TopicPartition
	for t := range image.Topics() {
		for p, s := range t.Partitions {
			candidates := slices.Concat(s.ISR, s.ELR)
			if s.Leader != kafka.NoNode || slices.ContainsFunc(candidates, isUp) {
				continue
			}
			if kept := slices.Concat(candidates, s.LastKnown); back && (len(kept) == 0 || slices.ContainsFunc(kept, isDown)) {
				continue
			}
			if out = append(out, kafka.TopicPartition{Topic: t.ID, Partition: int32(p)}); len(out) == endsMax {
				return out
			}
		}
	}
	return out
}
