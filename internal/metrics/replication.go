package metrics

import "github.com/prometheus/client_golang/prometheus"

// Replication are the instruments of the copies of partitions.
type Replication struct {
	// ISRShrinks and ISRExpands count replicas that partitions led here put out of the ISR and took in.
	ISRShrinks, ISRExpands prometheus.Counter
	// ReplicatedBytes counts record bytes taken over from leaders.
	ReplicatedBytes prometheus.Counter
	// Truncations counts logs that were cut where they parted from their leader's.
	Truncations prometheus.Counter
	// Rebuilds counts damaged replicas that were built anew from their leader.
	Rebuilds prometheus.Counter
}

func newReplication(p *prometheus.Registry) *Replication {
	return &Replication{
		ISRShrinks:      counter(p, "strandline_isr_shrinks_total", "Replicas put out of the in-sync replicas of partitions led by this node."),
		ISRExpands:      counter(p, "strandline_isr_expands_total", "Replicas taken into the in-sync replicas of partitions led by this node."),
		ReplicatedBytes: counter(p, "strandline_replicated_bytes_total", "Record bytes taken over from leaders."),
		Truncations:     counter(p, "strandline_log_truncations_total", "Logs cut where they parted from their leader's."),
		Rebuilds:        counter(p, "strandline_replica_rebuilds_total", "Damaged replicas built anew from their leader."),
	}
}
