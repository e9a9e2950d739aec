package group

import (
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// A group with members goes from one protocol to the other while they work (KIP-848). A classic group of consumers becomes a consumer group
// when a member joins by ConsumerGroupHeartbeat: the others stay in it by the classic protocol (consumer_classic.go), with what they had, and
// their generation is their epoch. It becomes a classic group again when one of them joins after the last member of the consumer protocol is out;
// heartbeats ask for that join.
//
// The record of the classic group is there or not: with it, in a log that ends within a conversion, the group is classic (load.go). So it is the
// last of the records that make a consumer group of it, and the first of those that make a classic one.

// Migration says which conversions a group with members may make. The values are those of group.consumer.migration.policy.
type Migration string

// The policies; "" is MigrateBoth.
const (
	MigrateBoth Migration = "bidirectional"
	MigrateUp   Migration = "upgrade"
	MigrateDown Migration = "downgrade"
	MigrateNone Migration = "disabled"
)

// converted makes a consumer group of a classic one, in memory alone. A member holds what its last complete generation gave it, and what it owned when
// it joined and nobody else was given: it may not have heard that it is to give that up. It holds all that until it says with its next join that it does
// not (I7).
func (x *step) converted(g *group, catalog Catalog) (*consumerGroup, *refusal) {
	c := &g.classic
	no := func(why string) (*consumerGroup, *refusal) {
		x.note(g, Note{Kind: GroupNotConverted, Generation: c.generation, Why: "it has members of the classic protocol, " + why})
		return nil, refuse(kafka.GroupIDNotFound, "Group %s is not a consumer group: it has members of the classic protocol, %s.", clip(g.id, nameBytesMax), why)
	}
	switch {
	case x.cfg.Migration == MigrateDown || x.cfg.Migration == MigrateNone:
		return no("and group.consumer.migration.policy is " + string(x.cfg.Migration))
	case c.protocolType != consumerType:
		return no("which are no consumers")
	case len(c.members) > x.cfg.ConsumerMaxSize:
		return no("more than a consumer group may have")
	}
	made := &consumerGroup{isStored: true, hasTarget: true, epoch: MemberEpoch(c.generation), targetEpoch: MemberEpoch(c.generation), sinceMs: x.stampMs()}
	claims := map[string][]kafka.TopicPartition{}
	for m := range c.all() {
		protocol := c.protocol
		if m.metadata(protocol) == nil {
			protocol = m.protocols[0].Name
		}
		said, ok := readConsumerWords(m.metadata(protocol))
		if !ok {
			return no("and what one of them reads cannot be read")
		}
		has, isPlain := x.assignedBefore(g, m, catalog)
		if !isPlain {
			return no("whose assignor is their own")
		}
		said.instance, said.clientID, said.clientHost, said.rebalanceMs = m.instance, m.clientID, m.clientHost, millis(m.rebalance)
		said.classic = &classicWords{sessionMs: millis(m.session), protocols: m.protocols}
		made.setSubscription(m.id, &said.subscription)
		made.hold(m.id, has)
		claims[m.id] = said.ownedIn(catalog)
	}
	for id, owned := range sorted(claims) {
		made.hold(id, owned)
		made.setTarget(id, append([]kafka.TopicPartition{}, sortedHoldings(made.members[id].assigned)...))
	}
	return made, nil
}

// hold gives a member of a group that is being made what nobody holds yet of some partitions.
func (c *consumerGroup) hold(id string, partitions []kafka.TopicPartition) {
	m := c.members[id]
	held := holdings{}
	maps.Copy(held, m.assigned)
	for _, tp := range partitions {
		if c.owners[tp] == "" { // a leader that gave a partition to two gave it to the first
			held[tp] = c.epoch
		}
	}
	c.setCurrent(id, &consumerMember{epoch: c.epoch, previous: c.epoch, state: settled, assigned: held})
}

// plainAssignors are the assignors that clients have in them. What some of them put beside the partitions (librdkafka's sticky ones: what the member
// had, and in which generation) is for their next assignment, which is the coordinator's from now on. Of other assignors nobody knows that.
var plainAssignors = map[string]bool{"range": true, "roundrobin": true, "sticky": true, "cooperative-sticky": true}

// assignedBefore is what the stored generation gives a member; false when the leader's assignor says more than which partitions.
func (x *step) assignedBefore(g *group, m *member, catalog Catalog) ([]kafka.TopicPartition, bool) {
	if g.stored == nil {
		return nil, true
	}
	given := g.stored.assignment(m.id)
	if len(given) == 0 {
		return nil, true
	}
	var a kmsg.ConsumerMemberAssignment
	if a.ReadFrom(given) != nil || len(a.UserData) > 0 && !plainAssignors[g.stored.protocol] {
		return nil, false
	}
	var out []kafka.TopicPartition
	for _, t := range a.Topics {
		id, _, ok := catalog.Topic(t.Topic)
		for _, p := range t.Partitions {
			if ok {
				out = append(out, kafka.TopicPartition{Topic: id, Partition: p})
			}
		}
	}
	return out, true
}

// convertUp makes the records of what converted has made, and ends what is soft of the classic group. Requests that wait are told to join again.
func (x *step) convertUp(g *group, made *consumerGroup, why string) {
	c := &g.classic
	for m := range c.all() {
		x.failJoin(m, kafka.RebalanceInProgress)
		x.failSync(m, kafka.RebalanceInProgress)
		x.timers.disarm(&m.timer)
	}
	x.timers.disarm(&c.joinTimer)
	x.timers.disarm(&c.syncTimer)
	g.resetClassic()
	x.record(g, consumerEpochRecord(g.id, made.epoch, made.hash, made.sinceMs))
	for _, m := range sorted(made.members) {
		x.record(g, consumerMemberRecord(g.id, m))
	}
	for id, target := range sorted(made.targets) {
		x.record(g, consumerTargetRecord(g.id, id, target))
	}
	x.record(g, consumerTargetEpochRecord(g.id, made.targetEpoch))
	for _, m := range sorted(made.members) {
		x.record(g, consumerCurrentRecord(g.id, m))
		x.watchConsumer(g, nil, m)
	}
	if g.stored != nil {
		x.record(g, groupTombstone(g.id))
	}
	x.note(g, Note{Kind: GroupConverted, Generation: Generation(made.epoch), Why: "to the consumer protocol: " + why})
}

// resetClassic empties the classic part of a group. Ids that were given out stay: who has one may join whatever the group is then.
func (g *group) resetClassic() {
	g.classic = classicGroup{generation: g.classic.generation, pending: g.classic.pending}
	g.classic.joinTimer = timer{kind: joinTimer, group: g}
	g.classic.syncTimer = timer{kind: syncTimer, group: g}
}

// mayGoDown says whether a consumer group becomes a classic one with the next join: its members are all of the classic protocol, and a group
// record can hold them.
func (x *step) mayGoDown(g *group) bool {
	c := &g.consumer
	if len(c.members) == 0 || c.classics < len(c.members) || len(c.members) > x.cfg.MaxSize || x.cfg.Migration == MigrateUp || x.cfg.Migration == MigrateNone {
		return false
	}
	bytes, protocols := 0, 0
	for id, m := range c.members {
		bytes += (&member{id: id, instance: m.instance, clientID: m.clientID, clientHost: m.clientHost, protocols: m.classic.protocols}).recordBytes()
		protocols += protocolBytes(m.classic.protocols)
		for range m.held() {
			bytes += partitionBytesMax
		}
	}
	return bytes <= x.cfg.RecordBytesMax && protocols <= groupProtocolBytesMax
}

// partitionBytesMax is the most that a partition takes in an assignment: its topic's name, with two lengths, and its number.
const partitionBytesMax = nameBytesMax + 10

// convertDown makes a classic group of a consumer group whose members all speak the classic protocol, and begins a rebalance: it has no leader
// who would have assigned what they have. Its generation is the newest that a member knows.
func (x *step) convertDown(g *group, catalog Catalog) {
	c := &g.classic
	g.resetClassic()
	c.protocolType, c.phase, c.generation = consumerType, stable, 0
	for id, m := range sorted(g.consumer.members) {
		n := &member{
			id: id, instance: m.instance, clientID: m.clientID, clientHost: m.clientHost, session: x.consumerSession(m),
			rebalance: milliseconds(m.rebalanceMs), protocols: m.classic.protocols,
		}
		if n.rebalance <= 0 {
			n.rebalance = n.session
		}
		n.timer = timer{kind: sessionTimer, group: g, member: n}
		c.add(n)
		c.generation = max(c.generation, Generation(m.epoch))
	}
	c.protocol = c.chooseProtocol()
	x.record(g, groupRecord(g, x.stampMs(), func(n *member) []byte {
		m := g.consumer.members[n.id]
		return classicAssignment(m.topics, slices.SortedFunc(m.held(), comparePartitions), catalog)
	}))
	x.replaceConsumer(g)
	for n := range c.all() {
		x.refresh(n)
	}
	x.note(g, Note{Kind: GroupConverted, Why: "to the classic protocol: no member of the consumer protocol is left"})
	x.prepare(g, "the group was a consumer group: its members have to share anew")
}

// classicAssignment is an assignment as members of the classic protocol read it. Partitions of topics that the member does not read by name, or that are
// gone, are not in it.
func classicAssignment(names []string, has []kafka.TopicPartition, catalog Catalog) []byte {
	a := kmsg.NewConsumerMemberAssignment()
	for _, name := range names {
		id, _, ok := catalog.Topic(name)
		if !ok {
			continue
		}
		t := kmsg.NewConsumerMemberAssignmentTopic()
		t.Topic = name
		for _, tp := range has {
			if tp.Topic == id {
				t.Partitions = append(t.Partitions, tp.Partition)
			}
		}
		if len(t.Partitions) > 0 {
			a.Topics = append(a.Topics, t)
		}
	}
	return a.AppendTo(nil)
}
