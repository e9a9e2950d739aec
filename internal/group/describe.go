package group

import (
	"slices"
	"strings"

	"strandline.dev/internal/kafka"
)

// The types of groups, as ListGroups shows them.
const (
	classicType       = "classic"
	consumerGroupType = "consumer"
)

// describe decides on a DescribeGroups. What members read and own is shown while the group is stable: at other times it is about
// to change.
func (x *step) describe(ev *DescribeGroups) {
	r := &DescribeReply{Groups: make([]Description, len(ev.Groups))}
	for i, id := range ev.Groups {
		g := x.groups[id]
		if g == nil || g.consumer.isThere() { // ConsumerGroupDescribe shows those
			r.Groups[i] = Description{Code: kafka.GroupIDNotFound, Group: id, State: dead}
			continue
		}
		r.Groups[i] = g.description()
	}
	x.replyAfterCommit(ev.Token, r)
}

func (g *group) description() Description {
	c := &g.classic
	d := Description{Group: g.id, State: c.phase.String(), ProtocolType: c.protocolType}
	if c.phase == stable {
		d.Protocol = c.protocol
	}
	for m := range c.all() {
		dm := DescribedMember{MemberID: m.id, InstanceID: m.instance, ClientID: m.clientID, ClientHost: m.clientHost}
		if c.phase == stable {
			dm.Metadata, dm.Assignment = m.metadata(c.protocol), g.stored.assignment(m.id)
		}
		d.Members = append(d.Members, dm)
	}
	return d
}

// list decides on a ListGroups.
func (x *step) list(ev *ListGroups) {
	r := &ListReply{}
	for id, g := range sorted(x.groups) {
		l := ListedGroup{Group: id, ProtocolType: g.classic.protocolType, State: g.classic.phase.String(), Type: classicType}
		if g.consumer.isThere() {
			l.ProtocolType, l.State, l.Type = consumerType, g.consumer.state(), consumerGroupType
		}
		if isListed(ev.States, l.State) && isListed(ev.Types, l.Type) {
			r.Groups = append(r.Groups, l)
		}
	}
	x.replyAfterCommit(ev.Token, r)
}

func isListed(filter []string, value string) bool {
	return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, value) })
}
