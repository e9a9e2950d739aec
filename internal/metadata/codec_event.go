package metadata

import (
	"fmt"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// messageVersion is the version of every event and reply this release writes and reads.
const messageVersion = 0

// layout is how one type of event or reply lies on the wire.
type layout struct {
	number uint16
	// encode appends v, if it is of this type.
	encode func(c *coder, v any) bool
	decode func(c *coder) any
}

func laid[T any](number uint16, walk func(*coder, *T)) layout {
	return layout{
		number: number,
		encode: func(c *coder, v any) bool {
			own, ok := v.(T)
			if !ok {
				return false
			}
			c.e.Header(number, messageVersion)
			walk(c, &own)
			c.end()
			return true
		},
		decode: func(c *coder) any {
			var own T
			walk(c, &own)
			c.end()
			return own
		},
	}
}

// eventLayouts has every event. Numbers are never reused.
var eventLayouts = []layout{
	laid(1, (*coder).registerBroker), laid(2, (*coder).brokerReady), laid(3, (*coder).fenceBroker),
	laid(4, (*coder).createTopics), laid(5, (*coder).deleteTopics), laid(6, (*coder).restoreTopic), laid(7, (*coder).purgeTopic),
	laid(8, func(c *coder, v *ExpireTrash) { c.time(&v.Now) }),
	laid(9, (*coder).replicasPurged), laid(10, (*coder).createPartitions), laid(11, (*coder).alterConfigs), laid(12, (*coder).allocateProducerIDs),
	laid(13, func(c *coder, v *FinishTopics) { c.time(&v.Now) }),
	laid(14, (*coder).electLeaders), laid(15, (*coder).alterAssignments), laid(16, (*coder).alterISR), laid(17, (*coder).reportDamage),
	laid(18, (*coder).drainBroker), laid(19, (*coder).removeBroker), laid(20, (*coder).recoverPartitions),
	laid(21, func(c *coder, v *BalanceLeaders) { num64(c, &v.Max) }),
	laid(22, func(c *coder, v *ContinueDrains) { num64(c, &v.Seed); num64(c, &v.Max) }),
	laid(23, func(c *coder, v *RaiseInternal) { num64(c, &v.Seed); num64(c, &v.Factor); num64(c, &v.Max) }),
	laid(24, func(c *coder, v *CreateACLs) { c.principal(&v.Principal); array(c, &v.ACLs, 9, (*coder).acl) }),
	laid(25, func(c *coder, v *DeleteACLs) { c.principal(&v.Principal); array(c, &v.Filters, 9, (*coder).aclFilter) }),
	laid(26, (*coder).alterScram), laid(27, (*coder).alterQuotas),
}

// EncodeEvent appends an event to dst: type and version, then its fields in the order of the struct.
func EncodeEvent(dst []byte, ev Event) []byte { return encodeLaid(dst, eventLayouts, ev) }

// DecodeEvent reads what EncodeEvent wrote, and nothing more. Errors wrap ErrMessage.
func DecodeEvent(b []byte) (Event, error) {
	v, err := decodeLaid(b, eventLayouts)
	if err != nil {
		return nil, err
	}
	return v.(Event), nil
}

func encodeLaid(dst []byte, layouts []layout, v any) []byte {
	c := &coder{e: &wire.Encoder{B: dst}}
	for _, l := range layouts {
		if l.encode(c, v) {
			return c.e.B
		}
	}
	panic(fmt.Sprintf("metadata: %T has no encoding", v))
}

func decodeLaid(b []byte, layouts []layout) (any, error) {
	c := &coder{d: wire.NewDecoder(b)}
	number, version := c.d.Header()
	if c.d.Err() == nil && (number == 0 || int(number) > len(layouts) || version != messageVersion) {
		return nil, fmt.Errorf("%w: type %d version %d is unknown to this release", ErrMessage, number, version)
	}
	if c.d.Err() != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, c.d.Err())
	}
	v := layouts[number-1].decode(c)
	if err := c.d.Done(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return v, nil
}

func (c *coder) principal(v *kafka.Principal) {
	c.text(&v.Type)
	c.text(&v.Name)
}

func (c *coder) registerBroker(v *RegisterBroker) {
	c.time(&v.Now)
	c.principal(&v.Principal)
	num64(c, &v.NextVersion)
	num32(c, &v.Node)
	c.id(&v.Incarnation)
	c.id(&v.Directory)
	num64(c, &v.StartNumber)
	c.text(&v.BootID)
	c.text(&v.Rack)
	c.text(&v.ClusterAddress)
	array(c, &v.Listeners, 7, func(c *coder, l *Listener) {
		c.text(&l.Name)
		c.text(&l.Host)
		num32(c, &l.Port)
		c.end()
	})
	array(c, &v.Roles, 1, (*coder).text)
	c.tps(&v.Unclean)
	c.tps(&v.Damaged)
	num64(c, &v.HolderSilent)
	c.bool(&v.Former)
}

func (c *coder) brokerReady(v *BrokerReady) {
	c.time(&v.Now)
	num32(c, &v.Node)
	num64(c, &v.Epoch)
}

func (c *coder) fenceBroker(v *FenceBroker) {
	c.time(&v.Now)
	num32(c, &v.Node)
	num64(c, &v.Epoch)
	c.bool(&v.Stopping)
}

func (c *coder) createTopics(v *CreateTopics) {
	c.time(&v.Now)
	c.principal(&v.Principal)
	array(c, &v.Topics, 28, func(c *coder, t *NewTopic) {
		c.id(&t.ID)
		c.text(&t.Name)
		num32(c, &t.Partitions)
		num32(c, &t.ReplicationFactor)
		array(c, &t.Assignments, 6, func(c *coder, a *Assignment) {
			num32(c, &a.Partition)
			c.nodes(&a.Replicas)
			c.end()
		})
		dictionary(c, &t.Configs, (*coder).maybe)
		c.bool(&t.Internal)
		c.end()
	})
	c.bool(&v.ValidateOnly)
	num64(c, &v.Seed)
	num32(c, &v.DefaultPartitions)
	num32(c, &v.DefaultReplicationFactor)
}

func (c *coder) deleteTopics(v *DeleteTopics) {
	c.time(&v.Now)
	c.principal(&v.Principal)
	array(c, &v.Topics, 26, func(c *coder, t *DeleteTopic) {
		c.text(&t.Name)
		c.id(&t.ID)
		num64(c, &t.ExpectedVersion)
		c.end()
	})
	c.bool(&v.Dev)
}

func (c *coder) restoreTopic(v *RestoreTopic) {
	c.time(&v.Now)
	c.principal(&v.Principal)
	c.id(&v.ID)
	c.text(&v.Name)
	c.text(&v.As)
}

func (c *coder) purgeTopic(v *PurgeTopic) {
	c.time(&v.Now)
	c.principal(&v.Principal)
	c.id(&v.ID)
}

func (c *coder) replicasPurged(v *ReplicasPurged) {
	num32(c, &v.Node)
	c.tps(&v.Partitions)
}

func (c *coder) createPartitions(v *CreatePartitions) {
	c.time(&v.Now)
	c.principal(&v.Principal)
	array(c, &v.Topics, 15, func(c *coder, t *NewPartitions) {
		c.text(&t.Name)
		num32(c, &t.Count)
		array(c, &t.Assignments, 1, (*coder).nodes)
		num64(c, &t.ExpectedVersion)
		c.end()
	})
	c.bool(&v.ValidateOnly)
	num64(c, &v.Seed)
}

func (c *coder) alterConfigs(v *AlterConfigs) {
	c.time(&v.Now)
	c.principal(&v.Principal)
	num32(c, &v.Resource.Kind)
	c.text(&v.Resource.Name)
	array(c, &v.Ops, 7, func(c *coder, o *ConfigOp) {
		c.text(&o.Key)
		num32(c, &o.Op)
		c.maybe(&o.Value)
		c.end()
	})
	c.bool(&v.Replace)
	c.bool(&v.ValidateOnly)
	num64(c, &v.ExpectedVersion)
	c.bool(&v.Dev)
}

func (c *coder) allocateProducerIDs(v *AllocateProducerIDs) {
	num32(c, &v.Node)
	num64(c, &v.Epoch)
	num64(c, &v.Count)
}

func (c *coder) named(v *NamedPartition) {
	c.text(&v.Topic)
	num32(c, &v.Partition)
}

func (c *coder) electLeaders(v *ElectLeaders) {
	c.principal(&v.Principal)
	c.bool(&v.Unclean)
	c.bool(&v.All)
	array(c, &v.Partitions, 5, (*coder).named)
}

func (c *coder) alterAssignments(v *AlterAssignments) {
	c.principal(&v.Principal)
	array(c, &v.Partitions, 8, func(c *coder, n *NewAssignment) {
		c.named(&n.NamedPartition)
		c.nodes(&n.Replicas)
		c.bool(&n.Cancel)
		c.end()
	})
	c.bool(&v.KeepFactor)
}

func (c *coder) alterISR(v *AlterISR) {
	c.time(&v.Now)
	num32(c, &v.Node)
	num64(c, &v.Epoch)
	array(c, &v.Changes, 31, func(c *coder, x *ISRChange) {
		c.tp(&x.TP)
		num32(c, &x.LeaderEpoch)
		num32(c, &x.PartitionEpoch)
		array(c, &x.ISR, 12, func(c *coder, m *Member) {
			num32(c, &m.Node)
			num64(c, &m.Epoch)
		})
		c.nodes(&x.Lost)
		c.end()
	})
}

func (c *coder) reportDamage(v *ReportDamage) {
	num32(c, &v.Node)
	num64(c, &v.Epoch)
	array(c, &v.Damaged, 25, func(c *coder, x *DamagedReplica) {
		c.tp(&x.TP)
		num32(c, &x.LeaderEpoch)
		c.end()
	})
}

func (c *coder) drainBroker(v *DrainBroker) {
	c.principal(&v.Principal)
	num32(c, &v.Node)
	c.bool(&v.Undo)
}

func (c *coder) removeBroker(v *RemoveBroker) {
	c.principal(&v.Principal)
	num32(c, &v.Node)
}

func (c *coder) recoverPartitions(v *RecoverPartitions) {
	c.principal(&v.Principal)
	array(c, &v.Partitions, 22, func(c *coder, p *PartitionEnds) {
		c.tp(&p.TP)
		array(c, &p.Ends, 16, func(c *coder, e *ReplicaEnd) {
			num32(c, &e.Node)
			num32(c, &e.LastEpoch)
			num64(c, &e.End)
		})
		c.end()
	})
	c.bool(&v.Whole)
}

func (c *coder) acl(v *ACL) {
	num32(c, &v.Resource)
	num32(c, &v.Pattern)
	c.text(&v.Name)
	c.text(&v.Principal)
	c.text(&v.Host)
	num32(c, &v.Operation)
	num32(c, &v.Permission)
	c.end()
}

func (c *coder) aclFilter(v *ACLFilter) {
	num32(c, &v.Resource)
	c.maybe(&v.Name)
	num32(c, &v.Pattern)
	c.maybe(&v.Principal)
	c.maybe(&v.Host)
	num32(c, &v.Operation)
	num32(c, &v.Permission)
	c.end()
}

func (c *coder) alterScram(v *AlterScram) {
	c.principal(&v.Principal)
	array(c, &v.Remove, 6, func(c *coder, n *ScramName) {
		c.text(&n.User)
		num32(c, &n.Mechanism)
		c.end()
	})
	array(c, &v.Set, 12, func(c *coder, s *ScramCredential) {
		c.text(&s.User)
		num32(c, &s.Mechanism)
		num32(c, &s.Iterations)
		c.bytes(&s.Salt)
		c.bytes(&s.StoredKey)
		c.bytes(&s.ServerKey)
		c.end()
	})
	c.bytes(&v.Secret)
}

func (c *coder) alterQuotas(v *AlterQuotas) {
	c.principal(&v.Principal)
	array(c, &v.Entities, 17, func(c *coder, q *QuotaChange) {
		for _, p := range []*QuotaName{&q.Entity.User, &q.Entity.Client, &q.Entity.IP} {
			num32(c, &p.Scope)
			c.text(&p.Name)
		}
		array(c, &q.Ops, 14, func(c *coder, o *QuotaOp) {
			num32(c, &o.Kind)
			c.float(&o.Value)
			c.bool(&o.Remove)
			c.end()
		})
		c.end()
	})
	c.bool(&v.ValidateOnly)
}
