package metadata

import (
	"strandline.dev/internal/kafka"
)

// replyLayouts has every reply. Numbers are never reused.
var replyLayouts = []layout{
	laid(1, (*coder).registered), laid(2, (*coder).brokerChanged),
	laid(3, list(30, (*coder).topicResult)), laid(4, list(29, (*coder).deleteResult)), laid(5, (*coder).restoreResult),
	laid(6, func(c *coder, v *Expired) { array(c, &v.Topics, 16, (*coder).id) }),
	laid(7, func(c *coder, v *Purged) { num64(c, &v.Done) }),
	laid(8, list(18, (*coder).partitionsResult)), laid(9, (*coder).alterResult), laid(10, (*coder).producerIDs),
	laid(11, list(10, func(c *coder, v *ElectionResult) { c.outcome(&v.Outcome); c.named(&v.NamedPartition) })),
	laid(12, list(10, func(c *coder, v *AssignmentResult) { c.outcome(&v.Outcome); c.named(&v.NamedPartition) })),
	laid(13, func(c *coder, v *Finished) { array(c, &v.Removed, 16, (*coder).id); num64(c, &v.Elected) }),
	laid(14, list(40, (*coder).isrResult)),
	laid(15, func(c *coder, v *DamageNoted) { c.outcome(&v.Outcome); c.names(&v.Offline); c.tps(&v.Stale) }),
	laid(16, func(c *coder, v *Drained) { c.outcome(&v.Outcome); num64(c, &v.Leaders); num64(c, &v.Replicas) }),
	laid(17, func(c *coder, v *BrokerRemoved) { c.outcome(&v.Outcome) }),
	laid(18, list(30, (*coder).recovered)),
	laid(19, func(c *coder, v *Balanced) { num64(c, &v.Moved); num64(c, &v.Left) }),
	laid(20, func(c *coder, v *MovesBegun) { num64(c, &v.Begun); num64(c, &v.Stuck) }),
	laid(21, list(6, func(c *coder, v *ACLCreated) { c.outcome(&v.Outcome) })),
	laid(22, list(7, func(c *coder, v *ACLsDeleted) { c.outcome(&v.Outcome); array(c, &v.ACLs, 9, (*coder).acl) })),
	laid(23, list(7, func(c *coder, v *ScramAltered) { c.outcome(&v.Outcome); c.text(&v.User) })),
	laid(24, list(6, func(c *coder, v *QuotaAltered) { c.outcome(&v.Outcome) })),
}

// list makes the layout of a list of results from that of one.
func list[T any](least int, one func(*coder, *T)) func(*coder, *[]T) {
	return func(c *coder, v *[]T) {
		array(c, v, least, func(c *coder, r *T) {
			one(c, r)
			c.end()
		})
	}
}

// EncodeReply appends the reply of a decision to dst: type and version, then its fields in the order of the struct.
func EncodeReply(dst []byte, reply any) []byte { return encodeLaid(dst, replyLayouts, reply) }

// DecodeReply reads what EncodeReply wrote, and nothing more. Errors wrap ErrMessage.
func DecodeReply(b []byte) (any, error) { return decodeLaid(b, replyLayouts) }

func (c *coder) outcome(v *Outcome) {
	num32(c, &v.Code)
	c.text(&v.Message)
}

func (c *coder) name(v *PartitionName) {
	c.text(&v.Topic)
	c.id(&v.ID)
	num32(c, &v.Partition)
}

func (c *coder) names(v *[]PartitionName) { array(c, v, 21, (*coder).name) }

func (c *coder) registered(v *Registered) {
	c.outcome(&v.Outcome)
	num64(c, &v.Epoch)
	c.tps(&v.PossibleLoss)
	c.names(&v.Offline)
}

func (c *coder) brokerChanged(v *BrokerChanged) {
	c.outcome(&v.Outcome)
	num64(c, &v.Elected)
	num64(c, &v.StillLeads)
}

func (c *coder) topicResult(v *TopicResult) {
	c.outcome(&v.Outcome)
	c.text(&v.Name)
	c.id(&v.ID)
	num32(c, &v.Partitions)
	num32(c, &v.ReplicationFactor)
	dictionary(c, &v.Configs, (*coder).text)
	num64(c, &v.Version)
}

func (c *coder) deleteResult(v *DeleteResult) {
	c.outcome(&v.Outcome)
	c.text(&v.Name)
	c.id(&v.ID)
	c.time(&v.PurgeAt)
}

func (c *coder) restoreResult(v *RestoreResult) {
	c.outcome(&v.Outcome)
	c.text(&v.Name)
	c.id(&v.ID)
	num64(c, &v.Version)
}

func (c *coder) partitionsResult(v *PartitionsResult) {
	c.outcome(&v.Outcome)
	c.text(&v.Name)
	num32(c, &v.Count)
	num64(c, &v.Version)
}

func (c *coder) alterResult(v *AlterResult) {
	c.outcome(&v.Outcome)
	num64(c, &v.Version)
}

func (c *coder) producerIDs(v *ProducerIDs) {
	c.outcome(&v.Outcome)
	num64(c, &v.First)
	num64(c, &v.Count)
}

func (c *coder) isrResult(v *ISRResult) {
	c.outcome(&v.Outcome)
	c.tp(&v.TP)
	c.state(&v.State)
}

func (c *coder) state(s *kafka.PartitionState) {
	num32(c, &s.Leader)
	num32(c, &s.LeaderEpoch)
	num32(c, &s.PartitionEpoch)
	num32(c, &s.EffectiveMinISR)
	for _, l := range []*[]kafka.NodeID{&s.Replicas, &s.ISR, &s.ELR, &s.LastKnown, &s.Adding, &s.Removing} {
		c.nodes(l)
	}
}

func (c *coder) recovered(v *Recovered) {
	c.outcome(&v.Outcome)
	c.name(&v.PartitionName)
	num32(c, &v.Leader)
	num32(c, &v.LastEpoch)
	num64(c, &v.End)
}
