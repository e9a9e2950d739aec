package metadata

import (
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
)

// deleteTopics moves each topic to the trash, or purges it when its recovery window is 0.
func (d *decider) deleteTopics(ev DeleteTopics) []DeleteResult {
	times := map[kafka.TopicID]int{}
	for _, q := range ev.Topics {
		if t, no := d.named(q); no.OK() {
			times[t.ID]++
		}
	}
	out := make([]DeleteResult, 0, len(ev.Topics))
	for _, q := range ev.Topics {
		r := DeleteResult{Name: q.Name, ID: q.ID}
		t, no := d.named(q)
		if no.OK() {
			r.Name, r.ID = t.Name, t.ID
			no = versionOutcome(t, q.ExpectedVersion)
		}
		if no.OK() {
			no = keptOutcome(t, "deletion")
		}
		if no.OK() && times[t.ID] > 1 {
			no = refused(kafka.InvalidRequest, "the request names topic %q %d times", t.Name, times[t.ID])
		}
		if r.Outcome = no; no.OK() {
			r.PurgeAt = d.deleteTopic(ev, t)
		}
		out = append(out, r)
	}
	return out
}

// named finds the topic that a request names by name or by id.
func (d *decider) named(q DeleteTopic) (*Topic, Outcome) {
	switch {
	case q.Name != "" && !q.ID.IsZero():
		return nil, refused(kafka.InvalidRequest, "a topic is named by its name or by its id, not by both")
	case q.Name != "":
		return d.readyTopic(q.Name, 0)
	}
	t := d.TopicByID(q.ID)
	if t == nil || t.State != StateReady {
		return nil, refused(kafka.UnknownTopicID, "no topic has the id %s", q.ID)
	}
	return t, Outcome{}
}

func (d *decider) deleteTopic(ev DeleteTopics, t *Topic) time.Time {
	state := TopicStateRecord{
		ID: t.ID, State: StatePurging, Version: t.Version + 1, AtMs: ev.Now.UnixMilli(), PurgeAtMs: ev.Now.UnixMilli(), DeletedBy: ev.Principal.String(),
	}
	var purgeAt time.Time
	if window := recoveryWindow(t, ev.Dev); window > 0 {
		purgeAt = ev.Now.Add(min(window, windowMax))
		state.State, state.PurgeAtMs = StateDeleted, purgeAt.UnixMilli()
	}
	d.write(state)
	return purgeAt
}

// windowMax keeps the end of a recovery window within what a time can be: a hundred years.
const windowMax = 100 * 365 * 24 * time.Hour

// recoveryWindow is the topic's strandline.delete.recovery.ms. A stored value that cannot be read does not shorten it.
func recoveryWindow(t *Topic, dev bool) time.Duration {
	c, err := config.ResolveTopic(t.Configs, config.DefaultBroker(dev), dev)
	if err != nil {
		c, _ = config.ResolveTopic(nil, config.DefaultBroker(false), false)
	}
	return c.DeleteRecovery
}

// restoreTopic takes a topic back. Its partitions get new leader epochs: what was parked or led before the deletion is over (I3).
func (d *decider) restoreTopic(ev RestoreTopic) RestoreResult {
	t := d.trashed(ev.ID, ev.Name)
	if t == nil {
		if ev.ID.IsZero() {
			return RestoreResult{Outcome: refused(kafka.UnknownTopicOrPartition, "no topic %q is in the trash", ev.Name), Name: ev.Name}
		}
		return RestoreResult{Outcome: refused(kafka.UnknownTopicID, "no topic with id %s is in the trash", ev.ID), ID: ev.ID}
	}
	r := RestoreResult{Name: t.Name, ID: t.ID}
	if ev.As != "" {
		r.Name = ev.As
	}
	if r.Outcome = d.nameOutcome(r.Name); !r.OK() {
		return r
	}
	for p, s := range t.Partitions {
		d.elect(&s, kafka.NoNode)
		d.setPartition(t.ID, int32(p), s)
	}
	r.Version = t.Version + 1
	state := TopicStateRecord{ID: t.ID, State: StateReady, Version: r.Version}
	if r.Name != t.Name {
		state.Name = r.Name
	}
	d.write(state)
	return r
}

// trashed finds a topic in the trash by id, or the one of that name that was deleted last.
func (d *decider) trashed(id kafka.TopicID, name string) *Topic {
	if !id.IsZero() {
		if t := d.TopicByID(id); t != nil && t.State == StateDeleted {
			return t
		}
		return nil
	}
	var last *Topic
	for k, t := range d.trash.from(trashKey{name: name}) {
		if k.name != name {
			break
		}
		last = t
	}
	return last
}

// purgeTopic ends a recovery window early.
func (d *decider) purgeTopic(ev PurgeTopic) DeleteResult {
	t := d.trashed(ev.ID, "")
	if t == nil || ev.ID.IsZero() {
		return DeleteResult{Outcome: refused(kafka.UnknownTopicID, "no topic with id %s is in the trash", ev.ID), ID: ev.ID}
	}
	d.writePurge(t)
	return DeleteResult{Name: t.Name, ID: t.ID}
}

// expireTrash purges what can no longer be restored (R12).
func (d *decider) expireTrash(ev ExpireTrash) Expired {
	var out Expired
	for _, t := range d.trash.all() {
		if !t.PurgeAt.After(ev.Now) {
			d.writePurge(t)
			out.Topics = append(out.Topics, t.ID)
		}
	}
	return out
}

func (d *decider) writePurge(t *Topic) {
	d.write(TopicStateRecord{
		ID: t.ID, State: StatePurging, Version: t.Version + 1, AtMs: t.DeletedAt.UnixMilli(), PurgeAtMs: t.PurgeAt.UnixMilli(), DeletedBy: t.DeletedBy,
	})
}

// replicasPurged takes note that directories are gone. A repeated report changes nothing.
func (d *decider) replicasPurged(ev ReplicasPurged) (out Purged) {
	for _, tp := range ev.Partitions {
		if d.PurgePending(ev.Node, tp) {
			d.write(ReplicaPurgeRecord{Topic: tp.Topic, Partition: tp.Partition, Node: ev.Node, Done: true})
			out.Done++
		}
	}
	return out
}
