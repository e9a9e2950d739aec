package group

import "strandline.dev/internal/kafka"

// describeConsumers decides on a DescribeConsumerGroups.
func (x *step) describeConsumers(ev *DescribeConsumerGroups) {
	r := &DescribeConsumerReply{Groups: make([]ConsumerDescription, len(ev.Groups))}
	for i, id := range ev.Groups {
		g := x.groups[id]
		if g == nil || !g.consumer.isThere() {
			r.Groups[i] = ConsumerDescription{Code: kafka.GroupIDNotFound, Group: id, State: dead}
			continue
		}
		r.Groups[i] = x.consumerDescription(g)
	}
	x.replyAfterCommit(ev.Token, r)
}

func (x *step) consumerDescription(g *group) ConsumerDescription {
	c := &g.consumer
	d := ConsumerDescription{Group: g.id, State: c.state(), Epoch: c.epoch, TargetEpoch: c.targetEpoch, Assignor: x.change(g, nil).assignor()}
	for id, m := range sorted(c.members) {
		d.Members = append(d.Members, DescribedConsumer{
			MemberID: id, InstanceID: m.instance, RackID: m.rack, ClientID: m.clientID, ClientHost: m.clientHost, Epoch: m.epoch,
			Topics: m.topics, Pattern: m.pattern, Assigned: sortedHoldings(m.assigned), Target: c.targets[id], IsClassic: m.classic != nil,
		})
	}
	return d
}
