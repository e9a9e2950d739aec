package metadata

import (
	"testing"

	"strandline.dev/internal/kafka"
)

// TestR178_Health: what a node counts of the partitions it leads, and who is without a leader.
func TestR178_Health(t *testing.T) {
	nodes := func(ids ...kafka.NodeID) []kafka.NodeID { return ids }
	for name, c := range map[string]struct {
		state kafka.PartitionState
		want  Health
	}{
		"whole":                    {kafka.PartitionState{Leader: 1, Replicas: nodes(1, 2, 3), ISR: nodes(3, 1, 2), EffectiveMinISR: 2}, Health{}},
		"another's":                {kafka.PartitionState{Leader: 2, Replicas: nodes(1, 2, 3), ISR: nodes(2), EffectiveMinISR: 2}, Health{}},
		"one is behind":            {kafka.PartitionState{Leader: 1, Replicas: nodes(1, 2, 3), ISR: nodes(1, 2), EffectiveMinISR: 2}, Health{UnderReplicated: 1}},
		"below the minimum":        {kafka.PartitionState{Leader: 1, Replicas: nodes(1, 2, 3), ISR: nodes(1), EffectiveMinISR: 2}, Health{UnderReplicated: 1, UnderMinISR: 1}},
		"one replica":              {kafka.PartitionState{Leader: 1, Replicas: nodes(1), ISR: nodes(1), EffectiveMinISR: 1}, Health{}},
		"one is being added":       {kafka.PartitionState{Leader: 1, Replicas: nodes(1, 2, 3), Adding: nodes(3), ISR: nodes(1, 2), EffectiveMinISR: 2}, Health{}},
		"added, and one is behind": {kafka.PartitionState{Leader: 1, Replicas: nodes(1, 2, 3), Adding: nodes(3), ISR: nodes(1, 3), EffectiveMinISR: 2}, Health{UnderReplicated: 1}},
		"no leader":                {kafka.PartitionState{Leader: kafka.NoNode, Replicas: nodes(1, 2, 3), EffectiveMinISR: 2}, Health{Offline: 1}},
	} {
		var got Health
		got.count(&c.state, 1)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
