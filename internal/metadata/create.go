package metadata

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
)

// createTopics creates each topic whole or not at all.
func (d *decider) createTopics(ev CreateTopics) []TopicResult {
	times := map[string]int{}
	for _, n := range ev.Topics {
		times[n.Name]++
	}
	out := make([]TopicResult, 0, len(ev.Topics))
	for _, n := range ev.Topics {
		r := TopicResult{Name: n.Name}
		if times[n.Name] > 1 {
			r.Outcome = refused(kafka.InvalidRequest, "the request names topic %q %d times", n.Name, times[n.Name])
		} else {
			r = d.createTopic(ev, n)
		}
		out = append(out, r)
	}
	if ev.ValidateOnly { // the draft was only to see what would happen
		d.records = nil
		for i := range out {
			out[i].ID = kafka.TopicID{}
		}
	}
	return out
}

func (d *decider) createTopic(ev CreateTopics, n NewTopic) TopicResult {
	r := TopicResult{Name: n.Name}
	if t := d.Topic(n.Name); t != nil && t.ID == n.ID && t.State == StateReady { // the answer to the same request was lost: nobody else mints this id
		r.ID, r.Partitions, r.ReplicationFactor, r.Configs, r.Version = t.ID, int32(len(t.Partitions)), int16(len(t.Partitions[0].Replicas)), t.Configs, t.Version
		return r
	}
	if r.Outcome = d.nameOutcome(n.Name); !r.OK() {
		return r
	}
	if n.ID.IsZero() || d.TopicByID(n.ID) != nil {
		r.Outcome = refused(kafka.UnknownServerError, "topic id %s is not a new one", n.ID)
		return r
	}
	var plan [][]kafka.NodeID
	if plan, r.Outcome = d.plan(ev, n); !r.OK() {
		return r
	}
	if r.Configs, r.Outcome = newConfigs(n, len(plan[0])); !r.OK() {
		return r
	}
	d.write(TopicRecord{
		ID: n.ID, Name: n.Name, Owner: ev.Principal.String(), CreatedMs: ev.Now.UnixMilli(), Partitions: int32(len(plan)), Internal: n.Internal,
	})
	d.write(appendConfigs(nil, n.ID, kafka.NoNode, r.Configs)...)
	for p, replicas := range plan {
		d.write(PartitionRecord{Topic: n.ID, Partition: int32(p), State: d.newPartition(replicas)})
	}
	d.write(TopicStateRecord{ID: n.ID, State: StateReady, Version: FirstVersion})
	r.ID, r.Partitions, r.ReplicationFactor, r.Version = n.ID, int32(len(plan)), int16(len(plan[0])), FirstVersion
	return r
}

// nameOutcome says whether a new topic may have a name.
func (d *decider) nameOutcome(name string) Outcome {
	if why := topicNameFault(name); why != "" {
		return refused(kafka.InvalidTopicException, "%s", why)
	}
	if d.Topic(name) != nil {
		return refused(kafka.TopicAlreadyExists, "topic %q already exists", name)
	}
	if t := d.lookalike(name); t != nil {
		return refused(kafka.InvalidTopicException, "topic name %q collides with the existing topic %q: names must differ in more than '.' and '_'", name, t.Name)
	}
	return Outcome{}
}

// plan decides where the partitions of a new topic go.
func (d *decider) plan(ev CreateTopics, n NewTopic) ([][]kafka.NodeID, Outcome) {
	if len(n.Assignments) > 0 {
		return d.assigned(n)
	}
	count, rf := n.Partitions, n.ReplicationFactor
	if count == -1 {
		count = ev.DefaultPartitions
	}
	if rf == -1 {
		rf = ev.DefaultReplicationFactor
	}
	if no := d.countOutcome(count, count); !no.OK() {
		return nil, no
	}
	p := d.placer(ev.Seed^idSeed(n.ID), nil)
	if no := p.factorOutcome(rf); !no.OK() {
		return nil, no
	}
	plan := make([][]kafka.NodeID, 0, count)
	for i := range count {
		plan = append(plan, p.place(i, int(rf)))
	}
	return plan, Outcome{}
}

// idSeed lets the topics of one request differ.
func idSeed(id kafka.TopicID) uint64 {
	var n uint64
	for _, b := range id[:8] {
		n = n<<8 | uint64(b)
	}
	return n
}

// countOutcome checks a number of partitions: of the topic, and of the cluster with added more (R6).
func (d *decider) countOutcome(count, added int32) Outcome {
	switch {
	case count < 1:
		return refused(kafka.InvalidPartitions, "number of partitions is %d: want at least 1, or -1 for the default", count)
	case count > PartitionsPerTopicMax:
		return refused(kafka.InvalidPartitions, "number of partitions is %d; the limit of a topic is %d", count, PartitionsPerTopicMax)
	case d.partitions+int(added) > PartitionsMax:
		return refused(kafka.InvalidPartitions, "the cluster has %d partitions and would get %d more; its limit is %d", d.partitions, added, PartitionsMax)
	}
	return Outcome{}
}

// factorOutcome checks a replication factor against the brokers that can take replicas (R2).
func (p *placer) factorOutcome(rf int16) Outcome {
	switch {
	case rf < 1:
		return refused(kafka.InvalidReplicationFactor, "replication factor is %d: want at least 1, or -1 for the default", rf)
	case rf > ReplicationFactorMax:
		return refused(kafka.InvalidReplicationFactor, "replication factor is %d; the limit is %d", rf, ReplicationFactorMax)
	case int(rf) > len(p.brokers):
		return refused(kafka.InvalidReplicationFactor,
			"insufficient placement: replication factor %d needs as many brokers, and %d can take a replica now (in %d racks)", rf, len(p.brokers), p.racks())
	}
	return Outcome{}
}

// assigned checks the placement a client chose.
func (d *decider) assigned(n NewTopic) ([][]kafka.NodeID, Outcome) {
	if n.Partitions != -1 || n.ReplicationFactor != -1 {
		return nil, refused(kafka.InvalidRequest, "with replica assignments, partitions and replication factor must both be -1; they are %d and %d", n.Partitions, n.ReplicationFactor)
	}
	if no := d.countOutcome(int32(min(len(n.Assignments), PartitionsPerTopicMax+1)), int32(len(n.Assignments))); !no.OK() {
		return nil, no
	}
	plan := make([][]kafka.NodeID, len(n.Assignments))
	for _, a := range n.Assignments {
		if a.Partition < 0 || int(a.Partition) >= len(plan) || plan[a.Partition] != nil {
			return nil, refused(kafka.InvalidReplicaAssignment, "partitions must be numbered from 0 without gaps or repeats; partition %d is not one of %d", a.Partition, len(plan))
		}
		if no := d.replicasOutcome(a.Partition, a.Replicas, len(n.Assignments[0].Replicas)); !no.OK() {
			return nil, no
		}
		plan[a.Partition] = slices.Clone(a.Replicas)
	}
	return plan, Outcome{}
}

// replicasOutcome checks the replicas a client chose for one partition.
func (d *decider) replicasOutcome(partition int32, replicas []kafka.NodeID, rf int) Outcome {
	no := func(format string, args ...any) Outcome {
		return refused(kafka.InvalidReplicaAssignment, "partition %d: %s", partition, fmt.Sprintf(format, args...))
	}
	switch {
	case len(replicas) == 0:
		return no("no replicas are given")
	case len(replicas) > ReplicationFactorMax:
		return no("%d replicas; the limit is %d", len(replicas), ReplicationFactorMax)
	case len(replicas) != rf:
		return no("%d replicas, where other partitions have %d", len(replicas), rf)
	}
	for i, n := range replicas {
		if has(replicas[:i], n) {
			return no("broker %v is named twice", n)
		}
		if d.Broker(n) == nil {
			return no("broker %v is not registered", n)
		}
	}
	if !slices.ContainsFunc(replicas, d.canLead) {
		return no("none of the brokers %s is up", nodeNames(replicas))
	}
	return Outcome{}
}

// newPartition is the first state of a partition: every replica whose broker is up is in sync, because all are empty.
func (d *decider) newPartition(replicas []kafka.NodeID) kafka.PartitionState {
	s := kafka.PartitionState{Replicas: replicas, Leader: kafka.NoNode}
	for _, n := range replicas {
		if d.canLead(n) {
			s.ISR = append(s.ISR, n)
		}
	}
	if len(s.ISR) > 0 {
		s.Leader = s.ISR[0]
	}
	return s
}

// newConfigs checks the configs of a new topic and adds the default of min.insync.replicas, which is fixed here (I1): 2 with three replicas or
// more, else 1.
func newConfigs(n NewTopic, rf int) (map[string]string, Outcome) {
	configs := make(map[string]string, len(n.Configs)+1)
	for _, k := range slices.Sorted(maps.Keys(n.Configs)) {
		if n.Configs[k] == nil {
			return nil, refused(kafka.InvalidConfig, "config %s has no value", k)
		}
		configs[k] = *n.Configs[k]
	}
	if no := configOutcome(config.ValidateTopic(configs)); !no.OK() {
		return nil, no
	}
	def := "1"
	if rf >= 3 {
		def = "2"
	}
	configs[config.DefaultMinInsyncKey] = def
	return configs, Outcome{}
}

// configOutcome turns an error of config into the protocol's code.
func configOutcome(err error) Outcome {
	switch {
	case err == nil:
		return Outcome{}
	case errors.Is(err, config.ErrReadOnly):
		return refused(kafka.InvalidRequest, "%v", err)
	}
	return refused(kafka.InvalidConfig, "%v", err)
}

func nodeNames(nodes []kafka.NodeID) string {
	var names []string
	for _, n := range nodes {
		names = append(names, strconv.Itoa(int(n)))
	}
	return strings.Join(names, ", ")
}
