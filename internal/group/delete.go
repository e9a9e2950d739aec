package group

import "strandline.dev/internal/kafka"

// deleteGroups decides on a DeleteGroups. The group's own record goes last: every prefix of the records leaves a group that can
// be deleted again.
func (x *step) deleteGroups(ev *DeleteGroups) {
	r := &DeleteReply{Groups: make([]GroupCode, len(ev.Groups))}
	for i, id := range ev.Groups {
		r.Groups[i] = GroupCode{Group: id, Code: x.deleteGroup(id)}
	}
	x.replyAfterCommit(ev.Token, r)
}

func (x *step) deleteGroup(id string) kafka.ErrorCode {
	if code := checkGroupID(id); code != kafka.None {
		return code
	}
	g := x.find(id)
	switch {
	case g == nil || g.owed > 0: // the latter: named twice in one request
		return kafka.GroupIDNotFound
	case g.isActive():
		return kafka.NonEmptyGroup
	}
	for memberID := range sorted(g.classic.pending) {
		x.endPending(g, memberID)
	}
	for p := range g.sortedOffsets() {
		x.record(g, offsetTombstone(id, p))
	}
	x.removeGroup(g, "by request")
	return kafka.None
}

// removeGroup deletes the record of a group without members.
func (x *step) removeGroup(g *group, why string) {
	x.dropUndo(g)
	if g.stored != nil {
		x.record(g, groupTombstone(g.id))
	}
	x.replaceConsumer(g)
	x.note(g, Note{Kind: GroupRemoved, Why: why})
}

// deleteOffsets decides on an OffsetDelete. Offsets of topics that an active group reads stay: the group would commit them again at
// once, or start from a place that nobody chose.
func (x *step) deleteOffsets(ev *DeleteOffsets) {
	r := &DeleteOffsetsReply{Code: checkGroupID(ev.Group)}
	g := x.find(ev.Group)
	switch {
	case r.Code != kafka.None:
	case g == nil:
		r.Code = kafka.GroupIDNotFound
	case g.classic.phase != empty && g.classic.protocolType != consumerType:
		r.Code = kafka.NonEmptyGroup // nobody but its members knows what it reads
	}
	if r.Code != kafka.None {
		x.reply(ev.Token, r)
		return
	}
	reads := g.classic.reads()
	if len(g.consumer.members) > 0 {
		reads = g.consumer.reads(ev.Catalog)
	}
	for _, t := range ev.Topics {
		codes := TopicCodes{Name: t.Name}
		code := kafka.None
		if reads(t.Name) {
			code = kafka.GroupSubscribedToTopic
		}
		for _, p := range t.Partitions {
			codes.Partitions = append(codes.Partitions, PartitionCode{Partition: p, Code: code})
			if _, ok := g.offsets[t.Name][p]; ok && code == kafka.None {
				x.record(g, offsetTombstone(g.id, topicPartition{t.Name, p}))
			}
		}
		r.Topics = append(r.Topics, codes)
	}
	x.replyAfterCommit(ev.Token, r)
}

// reads returns a test for the topics that the members read. A member whose metadata cannot be read may read anything.
func (c *classicGroup) reads() func(topic string) bool {
	topics, isUnknown := map[string]bool{}, false
	for m := range c.all() {
		protocol := c.protocol
		if m.metadata(protocol) == nil {
			protocol = m.protocols[0].Name // it joins the next generation
		}
		names, ok := topicsOf(m.metadata(protocol))
		isUnknown = isUnknown || !ok
		for _, name := range names {
			topics[name] = true
		}
	}
	return func(topic string) bool { return isUnknown || topics[topic] }
}
