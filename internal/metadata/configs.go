package metadata

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
)

// alterConfigs changes the configs of one resource, whole or not at all.
func (d *decider) alterConfigs(ev AlterConfigs) AlterResult {
	var r AlterResult
	switch ev.Resource.Kind {
	case ResourceTopic:
		r = d.alterTopic(ev)
	case ResourceBroker:
		r = d.alterBroker(ev)
	default:
		r.Outcome = refused(kafka.InvalidRequest, "resource type %d has no configs here", ev.Resource.Kind)
	}
	if ev.ValidateOnly {
		d.records = nil
	}
	return r
}

func (d *decider) alterTopic(ev AlterConfigs) AlterResult {
	t, no := d.readyTopic(ev.Resource.Name, ev.ExpectedVersion)
	if !no.OK() {
		return AlterResult{Outcome: no}
	}
	visible := maps.Clone(t.Configs)
	delete(visible, config.DefaultMinInsyncKey)
	next, no := changed(config.ScopeTopic, visible, ev)
	if no.OK() {
		no = alteredOutcome(t, next)
	}
	if !no.OK() {
		return AlterResult{Outcome: no}
	}
	records := configChanges(t.ID, kafka.NoNode, visible, next)
	if len(records) == 0 {
		return AlterResult{Version: t.Version}
	}
	d.write(records...)
	if d.becomesSynced(t, ev.Dev) {
		d.renewLeaders(t.ID)
	}
	return AlterResult{Version: d.closeChange(t.ID)}
}

// becomesSynced says that the topic's flush policy changes from replicated to synced.
func (d *decider) becomesSynced(before *Topic, dev bool) bool {
	broker := config.DefaultBroker(dev)
	old, err := config.ResolveTopic(before.Configs, broker, dev)
	next, err2 := config.ResolveTopic(d.TopicByID(before.ID).Configs, broker, dev)
	return err == nil && err2 == nil && old.Flush != next.Flush && next.Flush == config.FlushSynced
}

// renewLeaders begins a new leader epoch in every partition under the same leader. I4: a change to synced needs one, because members count again
// only after they have synced up to its start.
func (d *decider) renewLeaders(id kafka.TopicID) {
	for p, s := range slices.Clone(d.TopicByID(id).Partitions) {
		s.LeaderEpoch++
		d.setPartition(id, int32(p), s)
	}
}

func (d *decider) alterBroker(ev AlterConfigs) AlterResult {
	node := kafka.NoNode
	if ev.Resource.Name != "" {
		n, err := strconv.ParseInt(ev.Resource.Name, 10, 32)
		if err != nil || n < 0 {
			return AlterResult{Outcome: refused(kafka.InvalidRequest, "broker %q is no node id", ev.Resource.Name)}
		}
		node = kafka.NodeID(n)
		if d.Broker(node) == nil {
			return AlterResult{Outcome: refused(kafka.BrokerIDNotRegistered, "broker %v is not registered", node)}
		}
	}
	before := d.BrokerConfigs(node)
	next, no := changed(config.ScopeBroker, before, ev)
	if no.OK() {
		no = configOutcome(config.ValidateBroker(next))
	}
	if _, all := next[config.DrainKey]; no.OK() && all && node == kafka.NoNode {
		no = refused(kafka.InvalidConfig, "%s is set for one broker, not for all", config.DrainKey)
	}
	if !no.OK() {
		return AlterResult{Outcome: no}
	}
	drained := d.Draining(node)
	d.write(configChanges(kafka.TopicID{}, node, before, next)...)
	if d.Draining(node) && !drained {
		d.handOver(node)
	}
	return AlterResult{}
}

// changed is the set of configs after the operations: on top of what is set, or with Replace of nothing.
func changed(scope config.Scope, before map[string]string, ev AlterConfigs) (map[string]string, Outcome) {
	next := map[string]string{}
	if !ev.Replace {
		maps.Copy(next, before)
	}
	seen := map[string]bool{}
	for _, op := range ev.Ops {
		if seen[op.Key] {
			return nil, refused(kafka.InvalidRequest, "config %s is named twice", op.Key)
		}
		seen[op.Key] = true
		if no := perform(scope, next, op); !no.OK() {
			return nil, no
		}
	}
	return next, Outcome{}
}

// perform applies one operation to a set of configs.
func perform(scope config.Scope, configs map[string]string, op ConfigOp) Outcome {
	if op.Op == OpDelete {
		if _, set := configs[op.Key]; !set && config.Lookup(scope, op.Key) == nil {
			return configOutcome(&config.UnknownError{Key: op.Key, Nearest: config.Nearest(scope, op.Key), Where: scope.String()})
		}
		delete(configs, op.Key)
		return Outcome{}
	}
	if op.Value == nil {
		return refused(kafka.InvalidRequest, "config %s has no value", op.Key)
	}
	switch op.Op {
	case OpSet:
		configs[op.Key] = *op.Value
		return Outcome{}
	case OpAppend, OpSubtract:
		return performList(scope, configs, op)
	}
	return refused(kafka.InvalidRequest, "operation %d on config %s is unknown", op.Op, op.Key)
}

// performList adds items to a list or takes them off.
func performList(scope config.Scope, configs map[string]string, op ConfigOp) Outcome {
	s := config.Lookup(scope, op.Key)
	if s == nil {
		return configOutcome(&config.UnknownError{Key: op.Key, Nearest: config.Nearest(scope, op.Key), Where: scope.String()})
	}
	if s.Type != config.List {
		return refused(kafka.InvalidConfig, "config %s is not a list (its type is %v): it can be set or deleted", op.Key, s.Type)
	}
	current, set := configs[op.Key]
	if !set {
		current = s.Default
	}
	items := config.SplitList(current)
	for _, item := range config.SplitList(*op.Value) {
		at := slices.Index(items, item)
		switch {
		case op.Op == OpAppend && at < 0:
			items = append(items, item)
		case op.Op == OpSubtract && at >= 0:
			items = slices.Delete(items, at, at+1)
		}
	}
	configs[op.Key] = strings.Join(items, ",")
	return Outcome{}
}

// configChanges lists the records that lead from one set of configs to another, in key order.
func configChanges(topic kafka.TopicID, node kafka.NodeID, before, after map[string]string) []Record {
	keys := maps.Clone(before)
	if keys == nil {
		keys = map[string]string{}
	}
	maps.Copy(keys, after)
	var out []Record
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		old, had := before[k]
		v, has := after[k]
		switch {
		case has && (!had || old != v):
			out = append(out, ConfigRecord{Topic: topic, Node: node, Key: k, Value: &v})
		case had && !has:
			out = append(out, ConfigRecord{Topic: topic, Node: node, Key: k})
		}
	}
	return out
}

// String names a resource for people.
func (r Resource) String() string {
	switch {
	case r.Kind == ResourceTopic:
		return fmt.Sprintf("topic %q", r.Name)
	case r.Name == "":
		return "all brokers"
	}
	return "broker " + r.Name
}
