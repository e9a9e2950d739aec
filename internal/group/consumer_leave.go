package group

import "strandline.dev/internal/kafka"

// leaveConsumer takes a member out by its own wish. A static one may leave for a time: it keeps its partitions until it comes back or its
// session is over.
func (x *step) leaveConsumer(g *group, ev *ConsumerHeartbeat) (*ConsumerHeartbeatReply, *refusal) {
	c := &g.consumer
	m := c.members[ev.MemberID]
	if ev.InstanceID != nil {
		id, known := c.instances[*ev.InstanceID]
		if known && id != ev.MemberID {
			return nil, refuse(kafka.FencedInstanceID, "Instance %s has another process now.", *ev.InstanceID)
		}
		if !known {
			m = nil
		}
	}
	if m == nil || m.classic != nil {
		return nil, refuse(kafka.UnknownMemberID, "Member %s is not a member of group %s.", ev.MemberID, clip(ev.Group, nameBytesMax))
	}
	switch {
	case ev.Epoch == LeaveStaticEpoch && m.instance == "": // franz-go leaves its instance id out when it goes
		return nil, refuse(kafka.InvalidRequest, "Only a static member, one with an InstanceId, leaves for a time.")
	case ev.Epoch == LeaveEpoch:
		x.fenceConsumers(g, "it left", m.id)
	default:
		d := x.change(g, nil)
		gone := d.edit(m.id)
		gone.epoch, gone.previous, gone.state, gone.revoked = LeaveStaticEpoch, m.epoch, settled, nil
		d.finish()
		x.watchConsumer(g, m, gone)
	}
	return &ConsumerHeartbeatReply{MemberID: m.id, Epoch: ev.Epoch}, nil
}

// fenceConsumers takes members out and begins a new epoch; those that stay learn of it by their next heartbeats.
func (x *step) fenceConsumers(g *group, why string, ids ...string) {
	d := x.change(g, nil)
	for _, id := range ids {
		d.remove(id)
		x.unwatchConsumer(g, id)
		d.bump("member " + id + " is out: " + why)
		x.note(g, Note{Kind: MemberRemoved, Generation: Generation(d.epoch), Member: id, Why: why})
	}
	d.finish()
	if d.size() == 0 {
		x.watchExpiry(g)
	}
}

// consumerSilent drops a member that was silent for its session time-out.
func (x *step) consumerSilent(g *group, id string) {
	x.touched = append(x.touched, g)
	x.fenceConsumers(g, "session time-out", id)
}

// consumerHeldOn drops a member that did not give its partitions up, or one of the classic protocol that did not come for its assignment, within
// its rebalance time-out: others wait for them (P34).
func (x *step) consumerHeldOn(g *group, id string) {
	x.touched = append(x.touched, g)
	why := "it did not give up its partitions within the rebalance time-out"
	if g.consumer.members[id].classic != nil {
		why = "it did not rejoin and sync within the rebalance time-out"
	}
	x.fenceConsumers(g, why, id)
}

// replaceClassic ends the life of a group without members as a classic one: a group's name belongs to groups of all types.
func (x *step) replaceClassic(g *group) {
	for id := range sorted(g.classic.pending) {
		x.endPending(g, id)
	}
	if g.stored != nil {
		x.record(g, groupTombstone(g.id))
	}
}

// replaceConsumer ends the life of a group as a consumer group: one without members, or one that its members leave for a classic one.
func (x *step) replaceConsumer(g *group) {
	c := &g.consumer
	for id := range sorted(c.members) {
		x.unwatchConsumer(g, id)
		x.record(g, KV{Key: consumerKey(consumerCurrentKey, g.id, id)})
		x.record(g, KV{Key: consumerKey(consumerMemberKey, g.id, id)})
	}
	for id := range sorted(c.targets) {
		x.record(g, KV{Key: consumerKey(consumerTargetKey, g.id, id)})
	}
	if c.hasTarget {
		x.record(g, KV{Key: consumerKey(consumerTargetEpochKey, g.id)})
	}
	if c.isStored {
		x.record(g, KV{Key: consumerKey(consumerEpochKey, g.id)})
	}
}
