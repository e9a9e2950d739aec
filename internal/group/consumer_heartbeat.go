package group

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"strandline.dev/internal/kafka"
)

// refusal is why a heartbeat is refused.
type refusal struct {
	code kafka.ErrorCode
	text string
}

func refuse(code kafka.ErrorCode, format string, args ...any) *refusal {
	return &refusal{code, fmt.Sprintf(format, args...)}
}

// consumerHeartbeat decides on a ConsumerHeartbeat. A refused one changes nothing.
func (x *step) consumerHeartbeat(ev *ConsumerHeartbeat) {
	r, no := x.consumerBeat(ev)
	if no != nil {
		x.reply(ev.Token, &ConsumerHeartbeatReply{Code: no.code, Message: no.text, MemberID: ev.MemberID, Epoch: ev.Epoch})
		return
	}
	x.replyAfterCommit(ev.Token, r) // also when nothing is new: it may confirm what a request before it told and what is not committed yet
}

func (x *step) consumerBeat(ev *ConsumerHeartbeat) (*ConsumerHeartbeatReply, *refusal) {
	if no := x.checkConsumer(ev); no != nil {
		return nil, no
	}
	g, made, no := x.consumerGroupOf(ev)
	switch {
	case no != nil:
		return nil, no
	case ev.Epoch < 0:
		return x.leaveConsumer(g, ev)
	case ev.MemberID == "":
		ev.MemberID = ev.Random.String()
	}
	d := x.changeOf(g, &g.consumer, ev.Catalog)
	if made != nil {
		d = x.changeOf(g, made, ev.Catalog)
	}
	if no := d.admit(ev); no != nil {
		return nil, no
	}
	before := d.c.members[ev.MemberID]
	if no := d.subscribe(ev); no != nil {
		return nil, no
	}
	d.assign()
	if before == nil || ev.Epoch == JoinEpoch || ev.Epoch == before.epoch {
		d.reconcile(ev.MemberID, ev.Owned)
	} // else it did not see its last answer, or this is an old request that comes late: it is answered again, and gives nothing up (I7)
	switch {
	case made != nil:
		x.convertUp(g, made, "member "+ev.MemberID+" joined by it")
	case !g.consumer.isThere():
		x.replaceClassic(g)
	}
	d.finish()
	m := d.member(ev.MemberID)
	for _, id := range d.removed {
		x.unwatchConsumer(g, id)
	}
	x.watchConsumer(g, before, m)
	g.consumer.seen = ev.Catalog.Version()
	r := &ConsumerHeartbeatReply{MemberID: m.id, Epoch: m.epoch, Interval: x.cfg.ConsumerInterval}
	if ev.Epoch != m.epoch || ev.isFull() || before == nil || !m.assigned.isSame(before.assigned) {
		r.Assigned = sortedHoldings(m.assigned)
		if r.Assigned == nil {
			r.Assigned = []kafka.TopicPartition{}
		}
	}
	return r, nil
}

// isSame says whether both are the same partitions.
func (h holdings) isSame(o holdings) bool {
	if len(h) != len(o) {
		return false
	}
	for tp := range h {
		if _, ok := o[tp]; !ok {
			return false
		}
	}
	return true
}

// checkConsumer refuses what no group would accept, and records could not hold.
func (x *step) checkConsumer(ev *ConsumerHeartbeat) *refusal {
	bad := func(format string, args ...any) *refusal { return refuse(kafka.InvalidRequest, format, args...) }
	said := len(ev.ClientID) + len(ev.ClientHost)
	for _, s := range append([]string{ev.Group, ev.MemberID, orEmpty(ev.InstanceID), orEmpty(ev.RackID), orEmpty(ev.Pattern), ev.ClientID, ev.ClientHost}, ev.Topics...) {
		if said += len(s); !utf8.ValidString(s) {
			return bad("a name is not valid UTF-8")
		}
	}
	isEmpty := func(s *string) bool { return s != nil && *s == "" }
	switch {
	case ev.Group == "":
		return bad("GroupId can't be empty.")
	case isEmpty(ev.InstanceID):
		return bad("InstanceId can't be empty.")
	case isEmpty(ev.RackID):
		return bad("RackId can't be empty.")
	case ev.MemberID == "" && (ev.MustHaveID || ev.Epoch != JoinEpoch):
		return bad("MemberId can't be empty.")
	case ev.Epoch < LeaveStaticEpoch:
		return bad("MemberEpoch is %d, which is no epoch.", ev.Epoch)
	case len(ev.Group) > groupIDBytesMax:
		return refuse(kafka.InvalidGroupID, "A group's id has at most %d bytes.", groupIDBytesMax)
	case len(ev.MemberID) > memberIDBytesMax || len(orEmpty(ev.InstanceID)) > nameBytesMax || len(orEmpty(ev.RackID)) > nameBytesMax:
		return bad("A name is too long.")
	case said > subscriptionBytesMax || len(orEmpty(ev.Pattern)) > patternBytesMax:
		return bad("The subscription is too large: at most %d bytes, with an expression of at most %d.", subscriptionBytesMax, patternBytesMax)
	case ev.Epoch == JoinEpoch && ev.RebalanceTimeout < 0:
		return bad("RebalanceTimeoutMs must be provided in first request.")
	case ev.Epoch == JoinEpoch && (ev.Owned == nil || len(ev.Owned) > 0):
		return bad("TopicPartitions must be empty when (re-)joining.")
	case ev.Epoch == JoinEpoch && ev.Topics == nil && ev.Pattern == nil:
		return bad("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
	case ev.Assignor != nil && !slices.Contains(x.cfg.Assignors, *ev.Assignor):
		return refuse(kafka.UnsupportedAssignor, "ServerAssignor %s is not supported. Supported assignors: %s.", clip(*ev.Assignor, nameBytesMax), strings.Join(x.cfg.Assignors, ", "))
	}
	return nil
}

// consumerGroupOf finds the group, or creates it for who joins. made is what a classic group with members becomes.
func (x *step) consumerGroupOf(ev *ConsumerHeartbeat) (g *group, made *consumerGroup, no *refusal) {
	g = x.find(ev.Group)
	switch {
	case g == nil && ev.Epoch != JoinEpoch:
		return nil, nil, refuse(kafka.GroupIDNotFound, "Group %s does not exist.", clip(ev.Group, nameBytesMax))
	case g == nil:
		if g = x.create(ev.Group); g == nil {
			return nil, nil, refuse(kafka.PolicyViolation, "This coordinator has as many groups as it can have.")
		}
	case g.consumer.isThere():
	case ev.Epoch != JoinEpoch:
		return nil, nil, refuse(kafka.GroupIDNotFound, "Group %s is not a consumer group.", clip(ev.Group, nameBytesMax))
	case g.classic.phase != empty:
		made, no = x.converted(g, ev.Catalog)
	}
	return g, made, no
}

// admit finds the member that a heartbeat speaks for, and makes it when it joins (P31: no other epoch passes).
func (d *change) admit(ev *ConsumerHeartbeat) *refusal {
	static := ""
	if ev.InstanceID != nil {
		static = d.c.instances[*ev.InstanceID]
	}
	m := d.c.members[ev.MemberID]
	switch {
	case ev.Epoch == JoinEpoch:
		return d.join(ev, static)
	case m == nil && static != "":
		return refuse(kafka.FencedInstanceID, "Instance %s has another process now.", *ev.InstanceID)
	case m == nil:
		return refuse(kafka.UnknownMemberID, "Member %s is not a member of group %s.", ev.MemberID, clip(ev.Group, nameBytesMax))
	case ev.InstanceID != nil && static == "":
		return refuse(kafka.UnknownMemberID, "Instance %s is unknown.", *ev.InstanceID)
	case ev.InstanceID != nil && static != ev.MemberID:
		return refuse(kafka.FencedInstanceID, "Instance %s has another process now.", *ev.InstanceID)
	case m.classic != nil:
		return refuse(kafka.UnknownMemberID, "Member %s of group %s joined by the classic protocol.", ev.MemberID, clip(ev.Group, nameBytesMax))
	case ev.Epoch == m.epoch:
		return nil
	case ev.Epoch == m.previous && m.epoch > 0 && ev.Owned != nil && m.assigned.hasAll(ev.Owned):
		return nil // it did not see the answer that gave it its epoch, and has nothing that it must not have
	}
	return refuse(kafka.FencedMemberEpoch, "The member epoch is %d, not %d. The member must abandon all its partitions and rejoin.", m.epoch, ev.Epoch)
}

// join makes a new member, or takes back one that comes again. A new process of a static member takes the place of the old one, which
// must have left for a time.
func (d *change) join(ev *ConsumerHeartbeat, static string) *refusal {
	if static != "" && static != ev.MemberID {
		if old := d.c.members[static]; old.epoch != LeaveStaticEpoch && old.classic == nil {
			return refuse(kafka.UnreleasedInstanceID, "Instance %s is in use by member %s.", *ev.InstanceID, static)
		}
		d.replaceStatic(static, ev.MemberID)
		return nil
	}
	m := d.c.members[ev.MemberID]
	switch {
	case m == nil && d.size() >= d.cfg.ConsumerMaxSize:
		return refuse(kafka.GroupMaxSizeReached, "The group has %d members and may have no more.", d.size())
	case m == nil:
		d.edit(ev.MemberID)
		d.bump("member " + ev.MemberID + " joined")
	case m.epoch == LeaveStaticEpoch:
		m = d.edit(ev.MemberID)
		m.epoch, m.previous, m.state, m.revoked = 0, 0, settled, nil
	}
	return nil
}

// replaceStatic gives what a static member has and is to have to its new process. What the old one was to give up is free.
func (d *change) replaceStatic(static, id string) {
	d.remove(static)
	m := d.edit(id)
	*m = *d.c.members[static]
	m.id, m.isSubscribed = id, false
	d.targets[id] = d.c.targets[static]
	m.epoch, m.previous, m.state, m.revoked = 0, 0, settled, nil
}

// hasAll says whether all of some partitions are among the holdings.
func (h holdings) hasAll(owned []kafka.TopicPartition) bool {
	for _, tp := range owned {
		if _, ok := h[tp]; !ok {
			return false
		}
	}
	return true
}

// subscribe takes in what the member says about itself, and begins a new epoch when the group is to read other topics than before.
func (d *change) subscribe(ev *ConsumerHeartbeat) *refusal {
	m := d.edit(ev.MemberID)
	before := m.subscription
	s := &m.subscription
	s.clientID, s.clientHost, s.classic = clip(ev.ClientID, clientBytesMax), clip(ev.ClientHost, clientBytesMax), nil
	set := func(field *string, said *string) {
		if said != nil {
			*field = *said
		}
	}
	set(&s.instance, ev.InstanceID)
	set(&s.rack, ev.RackID)
	if ev.Pattern != nil {
		s.pattern, s.reader = *ev.Pattern, ev.Reader
		if s.pattern == "" {
			s.reader = ""
		}
	}
	set(&s.assignor, ev.Assignor)
	if ev.RebalanceTimeout >= 0 {
		s.rebalanceMs = int32(min(ev.RebalanceTimeout.Milliseconds(), math.MaxInt32))
	}
	if ev.Topics != nil {
		s.topics = slices.Compact(slices.Sorted(slices.Values(ev.Topics)))
	}
	if ev.Pattern != nil && *ev.Pattern != "" {
		if err := ev.Catalog.Check(*ev.Pattern); err != nil {
			return refuse(kafka.InvalidRegularExpression, "SubscribedTopicRegex %q is not a valid regular expression: %v.", *ev.Pattern, err)
		}
	}
	d.compare(m, &before)
	return nil
}

// compare begins a new epoch when a member, or the group, is to read other topics than before.
func (d *change) compare(m *consumerMember, before *subscription) {
	hasChanged := !m.reads(before) || m.subscription.assignor != before.assignor
	if hasChanged {
		d.bump("member " + m.id + " changed what it reads")
	}
	if hasChanged || d.c.seen != d.catalog.Version() || d.epoch != d.targetEpoch {
		if d.hash = d.hashTopics(); d.hash != d.c.hash && d.epoch == d.targetEpoch {
			d.bump("the topics that the group reads changed")
		}
	}
}

// watchConsumer starts the session of a member anew, and watches it while it is to give partitions up.
func (x *step) watchConsumer(g *group, before, m *consumerMember) {
	c := &g.consumer
	x.timers.disarm(&g.expiry)
	s := c.sessions[m.id]
	if s == nil {
		s = &consumerSession{
			session: timer{kind: consumerSessionTimer, group: g, id: m.id}, revoke: timer{kind: consumerRevokeTimer, group: g, id: m.id},
		}
		if c.sessions == nil {
			c.sessions = map[string]*consumerSession{}
		}
		c.sessions[m.id] = s
	}
	x.arm(&s.session, x.consumerSession(m))
	switch {
	case m.classic != nil: // its joins and syncs say when it is late
	case m.state != revoking:
		x.timers.disarm(&s.revoke)
	case !s.revoke.isArmed() || before == nil || before.epoch != m.epoch:
		x.arm(&s.revoke, time.Duration(m.rebalanceMs)*time.Millisecond)
	}
}

// consumerSession is how long a member may be silent.
func (x *step) consumerSession(m *consumerMember) time.Duration {
	if m.classic == nil {
		return x.cfg.ConsumerSession
	}
	session := time.Duration(m.classic.sessionMs) * time.Millisecond
	return max(x.cfg.SessionMin, min(session, x.cfg.SessionMax))
}

// unwatchConsumer ends the watch of a member that is out (C114).
func (x *step) unwatchConsumer(g *group, id string) {
	if s := g.consumer.sessions[id]; s != nil {
		x.timers.disarm(&s.session)
		x.timers.disarm(&s.revoke)
		delete(g.consumer.sessions, id)
	}
}
