package group

import "time"

// load makes groups of the replayed records. Members come back as they were when their generation was complete, with sessions that begin
// now: the time for which no coordinator listened is not held against them.
func (x *step) load() {
	x.loaded, x.loadedAt = true, x.now
	for _, g := range sorted(x.groups) {
		c := &g.classic
		if g.stored != nil {
			c.generation, c.protocolType = g.stored.generation, g.stored.protocolType
		}
		isClassic := g.stored != nil && len(g.stored.members) > 0
		switch isThere := g.consumer.isThere(); {
		case isClassic && isThere:
			x.replaceConsumer(g) // a conversion that was not completed: its last record is the one that ends the classic group
		case isThere && g.stored != nil:
			x.record(g, groupTombstone(g.id)) // the same; nobody is in the classic group, so the consumer group stays, with members or without
		}
		if !isClassic && len(g.consumer.members) > 0 {
			for _, m := range sorted(g.consumer.members) {
				x.watchConsumer(g, nil, m)
			}
			continue
		}
		if !isClassic {
			x.arm(&g.expiry, expiryCheckMin) // a node that restarts every day must get there too
			continue
		}
		x.restore(g)
		switch {
		case len(c.members) > x.cfg.MaxSize:
			x.prepare(g, "the group has more members than allowed")
		case g.stored.leader == "":
			x.prepare(g, "the group was a consumer group: its members have to share anew")
		}
	}
}

// restore puts the members of a complete generation back.
func (x *step) restore(g *group) {
	c := &g.classic
	c.phase, c.protocol = stable, g.stored.protocol
	for i := range g.stored.members {
		r := &g.stored.members[i]
		session := time.Duration(r.sessionMs) * time.Millisecond
		m := &member{
			id: r.id, instance: r.instance, clientID: r.clientID, clientHost: r.clientHost,
			session:   max(x.cfg.SessionMin, min(session, x.cfg.SessionMax)),
			rebalance: time.Duration(r.rebalanceMs) * time.Millisecond,
			protocols: []Protocol{{Name: c.protocol, Metadata: r.subscription}},
		}
		if m.rebalance <= 0 {
			m.rebalance = m.session
		}
		m.timer = timer{kind: sessionTimer, group: g, member: m}
		c.add(m)
		x.refresh(m)
	}
	c.leader = c.members[g.stored.leader]
}
