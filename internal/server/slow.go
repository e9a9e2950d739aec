package server

import (
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/wire"
)

// ours says whether an error is the cluster's: the request was right, and was not carried out. Availability is counted by it (R159). A client
// that asks the wrong node is not refused but shown the way; that nobody leads is judged where it is known.
func ours(code kafka.ErrorCode) bool {
	switch code {
	case kafka.UnknownServerError, kafka.KafkaStorageError, kafka.RequestTimedOut, kafka.NotEnoughReplicas, kafka.NotEnoughReplicasAfterAppend,
		kafka.LeaderNotAvailable, kafka.OffsetNotAvailable, kafka.ReplicaNotAvailable:
		return true
	}
	return false
}

// slowAnswer counts and logs a request that took longer than it should, and where the time went. Long polls wait because they were asked to.
func (s *Server) slowAnswer(call *Call, why string, attrs ...any) {
	took := time.Since(call.Received)
	if s.cfg.SlowAfter <= 0 || took <= s.cfg.SlowAfter {
		return
	}
	api, _ := wire.Lookup(call.Request.Key())
	s.cfg.Metrics.Slow.WithLabelValues(api.Name).Inc()
	s.peers.line(reasonSlow, "slow", call.Peer, append([]any{
		"api", api.Name, "client", clip(call.ClientID), "principal", clip(call.Principal.String()), "took", took, "limit", s.cfg.SlowAfter, "why", why}, attrs...)...)
}

// slow logs an exchange that was slow and whose handler does not say so itself.
func (x *exchange) slow(s *Server) {
	if x.row == nil || x.row.longPoll || x.row.key == wire.KeyProduce || x.call.Received.IsZero() {
		return
	}
	s.slowAnswer(&x.call, "from its receipt to its answer, what was before it on the connection included")
}

// slow logs a publish that took long: the partition that stands for it, and its in-sync replicas, one of which has not stored it in time.
func (p *publish) slow(results []replica.AppendResult) {
	if p.server.cfg.SlowAfter <= 0 || time.Since(p.call.Received) <= p.server.cfg.SlowAfter {
		return
	}
	if len(p.items) == 0 {
		p.server.slowAnswer(p.call, "it was refused after a wait")
		return
	}
	at, why := 0, "appending took long: the disk, or a wait for its turn"
	if p.parked {
		why = "an in-sync replica stored it late"
	}
	for i := range results {
		if results[i].Err != nil {
			at, why = i, results[i].Err.Error()
			break
		}
	}
	tp := p.items[at].TP
	attrs := []any{"topic", p.slots[at].name, "topic_partition", tp.Partition, "partitions", len(p.items)}
	if t := p.server.cfg.Image().TopicByID(tp.Topic); t != nil && int(tp.Partition) < len(t.Partitions) {
		attrs = append(attrs, "isr", fmt.Sprint(t.Partitions[tp.Partition].ISR))
		if p.parked && results[at].Err == nil && len(p.items) == 1 && len(t.Partitions[tp.Partition].Replicas) == 1 {
			why = "this node's disk stored it late"
		}
	}
	p.server.slowAnswer(p.call, why, attrs...)
}
