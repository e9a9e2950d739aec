package metadata

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
)

// command is one line of a script: a verb, "key=value" arguments and bare flags.
type command struct {
	t    *testing.T
	verb string
	args map[string]string
}

func parseCommand(t *testing.T, line string) command {
	words := strings.Fields(line)
	c := command{t: t, verb: words[0], args: map[string]string{}}
	for _, w := range words[1:] {
		k, v, _ := strings.Cut(w, "=")
		c.args[k] = v
	}
	return c
}

func (c command) flag(k string) bool { _, ok := c.args[k]; return ok }

func (c command) text(k, def string) string {
	if v, ok := c.args[k]; ok {
		return v
	}
	return def
}

func (c command) number(k string, def int64) int64 {
	v, ok := c.args[k]
	if !ok {
		return def
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		c.t.Fatalf("%s=%s: %v", k, v, err)
	}
	return n
}

func (c command) duration(k string) time.Duration {
	d, err := time.ParseDuration(c.text(k, "0s"))
	if err != nil {
		c.t.Fatal(err)
	}
	return d
}

func (c command) node(k string) kafka.NodeID { return kafka.NodeID(c.number(k, 1)) }

func (c command) list(k string) []string {
	if c.args[k] == "" {
		return nil
	}
	return strings.Split(c.args[k], ",")
}

func (c command) id(k string) kafka.ID { return testID(c.args[k]) }

// testID is the id whose first bytes are a text.
func testID(s string) kafka.ID {
	var id kafka.ID
	copy(id[:], s)
	return id
}

func idText(id kafka.ID) string { return strings.TrimRight(string(id[:]), "\x00") }

func nodeList(t *testing.T, s string) []kafka.NodeID {
	var out []kafka.NodeID
	for item := range strings.SplitSeq(s, ",") {
		if item == "" {
			continue
		}
		n, err := strconv.Atoi(item)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, kafka.NodeID(n))
	}
	return out
}

// assignments reads "1,2/2,1".
func (c command) assignments(k string) [][]kafka.NodeID {
	if c.args[k] == "" {
		return nil
	}
	var out [][]kafka.NodeID
	for part := range strings.SplitSeq(c.args[k], "/") {
		out = append(out, nodeList(c.t, part))
	}
	return out
}

// newTopics reads "topic=a,b partitions=2 rf=1 assign=0:1,2/1:2,1 set.retention.ms=5 null.x"; ids are the names, or id=.
func (c command) newTopics() []NewTopic {
	var out []NewTopic
	for _, name := range strings.Split(c.args["topic"], ",") {
		n := NewTopic{
			ID: testID(c.text("id", name)), Name: name, Partitions: int32(c.number("partitions", -1)), ReplicationFactor: int16(c.number("rf", -1)),
			Configs: map[string]*string{}, Internal: c.flag("internal"),
		}
		for k, v := range c.args {
			if key, ok := strings.CutPrefix(k, "set."); ok {
				n.Configs[key] = &v
			}
			if key, ok := strings.CutPrefix(k, "null."); ok {
				n.Configs[key] = nil
			}
		}
		for part := range strings.SplitSeq(c.args["assign"], "/") {
			if p, nodes, ok := strings.Cut(part, ":"); ok {
				i, _ := strconv.Atoi(p)
				n.Assignments = append(n.Assignments, Assignment{Partition: int32(i), Replicas: nodeList(c.t, nodes)})
			}
		}
		out = append(out, n)
	}
	return out
}

// partitions reads "of=a-0,b-1".
func (c command) partitions() []NamedPartition {
	var out []NamedPartition
	for _, item := range c.list("of") {
		i := strings.LastIndexByte(item, '-')
		p, err := strconv.Atoi(item[i+1:])
		if err != nil {
			c.t.Fatal(err)
		}
		out = append(out, NamedPartition{item[:i], int32(p)})
	}
	return out
}

func (c command) resource() Resource {
	if c.flag("broker") {
		return Resource{Kind: ResourceBroker, Name: c.args["broker"]}
	}
	if c.flag("kind") {
		return Resource{Kind: ResourceKind(c.number("kind", 0))}
	}
	return Resource{Kind: ResourceTopic, Name: c.args["topic"]}
}

// ops reads "set.k=v del.k add.k=v sub.k=v null.k twice.k=v", in name order.
func (c command) ops() []ConfigOp {
	var out []ConfigOp
	for _, k := range slices.Sorted(maps.Keys(c.args)) {
		v := c.args[k]
		verb, key, ok := strings.Cut(k, ".")
		if !ok {
			continue
		}
		switch verb {
		case "set":
			out = append(out, ConfigOp{key, OpSet, &v})
		case "del":
			out = append(out, ConfigOp{key, OpDelete, nil})
		case "add":
			out = append(out, ConfigOp{key, OpAppend, &v})
		case "sub":
			out = append(out, ConfigOp{key, OpSubtract, &v})
		case "null":
			out = append(out, ConfigOp{key, OpSet, nil})
		case "twice":
			out = append(out, ConfigOp{key, OpSet, &v}, ConfigOp{key, OpSet, &v})
		}
	}
	return out
}

// rawPartition changes one partition of the Image: "topic=t partition=0 isr=1,2 elr=3 leader=1 bump".
func rawPartition(i *Image, c command) Record {
	t := i.Topic(c.args["topic"])
	p := int32(c.number("partition", 0))
	s := t.Partitions[p]
	s.EffectiveMinISR = 0
	s.PartitionEpoch++
	for k, at := range map[string]*[]kafka.NodeID{"isr": &s.ISR, "elr": &s.ELR, "replicas": &s.Replicas, "adding": &s.Adding, "removing": &s.Removing} {
		if v, ok := c.args[k]; ok {
			*at = nodeList(c.t, v)
		}
	}
	s.Leader = kafka.NodeID(c.number("leader", int64(s.Leader)))
	if c.flag("bump") {
		s.LeaderEpoch++
	}
	return PartitionRecord{Topic: t.ID, Partition: p, State: s}
}

// trace prints the records of a decision and its reply.
func trace(i *Image, d Decision) string {
	var b strings.Builder
	for _, r := range d.Records {
		fmt.Fprintf(&b, "%s\n", recordText(r))
	}
	if len(d.Records) == 0 {
		b.WriteString("(no records)\n")
	}
	if d.Reply == nil {
		return b.String()
	}
	v := reflect.ValueOf(d.Reply)
	if v.Kind() != reflect.Slice {
		return b.String() + "reply " + structText(v) + "\n"
	}
	for n := range v.Len() {
		b.WriteString("reply " + structText(v.Index(n)) + "\n")
	}
	return b.String()
}

func recordText(r Record) string {
	name := strings.TrimSuffix(reflect.TypeOf(r).Name(), "Record")
	if p, ok := r.(PartitionRecord); ok {
		return fmt.Sprintf("%s %s-%d %s", name, idText(p.Topic), p.Partition, stateText(p.State))
	}
	return name + " " + structText(reflect.ValueOf(r))
}

func stateText(s kafka.PartitionState) string {
	var b strings.Builder
	fmt.Fprintf(&b, "leader=%d/%d epoch=%d replicas=%s isr=%s", s.Leader, s.LeaderEpoch, s.PartitionEpoch, nodes(s.Replicas), nodes(s.ISR))
	for _, l := range []struct {
		name string
		list []kafka.NodeID
	}{{"elr", s.ELR}, {"lastKnown", s.LastKnown}, {"adding", s.Adding}, {"removing", s.Removing}} {
		if len(l.list) > 0 {
			fmt.Fprintf(&b, " %s=%s", l.name, nodes(l.list))
		}
	}
	if s.EffectiveMinISR != 0 {
		fmt.Fprintf(&b, " minISR=%d", s.EffectiveMinISR)
	}
	return b.String()
}

func nodes(list []kafka.NodeID) string { return strings.ReplaceAll(nodeNames(list), " ", "") }

// structText prints the fields that are not zero.
func structText(v reflect.Value) string {
	var parts []string
	for n := range v.NumField() {
		f := v.Field(n)
		name := v.Type().Field(n).Name
		if f.IsZero() || name == "Listeners" || name == "Roles" {
			continue
		}
		parts = append(parts, name+"="+valueText(f.Interface()))
	}
	if len(parts) == 0 {
		return "ok"
	}
	return strings.Join(parts, " ")
}

func valueText(v any) string {
	switch v := v.(type) {
	case Outcome:
		return fmt.Sprintf("%v %q", v.Code, v.Message)
	case kafka.ID:
		return idText(v)
	case kafka.TopicPartition:
		return fmt.Sprintf("%s-%d", idText(v.Topic), v.Partition)
	case PartitionName:
		return fmt.Sprintf("%s-%d", v.Topic, v.Partition)
	case kafka.PartitionState:
		return "{" + stateText(v) + "}"
	case *string:
		return *v
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05Z")
	case map[string]string:
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, strings.Replace(k, config.DefaultMinInsyncKey, "(default)min.insync.replicas", 1)+"="+v[k])
		}
		return "{" + strings.Join(parts, " ") + "}"
	case []kafka.TopicPartition:
		var parts []string
		for _, tp := range v {
			parts = append(parts, fmt.Sprintf("%s-%d", idText(tp.Topic), tp.Partition))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case []kafka.TopicID:
		var parts []string
		for _, id := range v {
			parts = append(parts, idText(id))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case []PartitionName:
		var parts []string
		for _, p := range v {
			parts = append(parts, fmt.Sprintf("%s-%d", p.Topic, p.Partition))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprint(v)
}

// show prints a part of the Image: a topic, the trash, the brokers, or the purges of a node.
func show(i *Image, c command) string {
	var b strings.Builder
	topic := func(t *Topic) {
		fmt.Fprintf(&b, "topic %s id=%s %s version=%d owner=%s %s\n", t.Name, idText(t.ID), t.State, t.Version, t.Owner, valueText(t.Configs))
		for p, s := range t.Partitions {
			fmt.Fprintf(&b, "  %d %s\n", p, stateText(s))
		}
	}
	switch {
	case c.flag("topic"):
		if t := i.Topic(c.args["topic"]); t != nil {
			topic(t)
		}
	case c.flag("id"):
		if t := i.TopicByID(c.id("id")); t != nil {
			topic(t)
		}
	case c.flag("trash"):
		for t := range i.Trash() {
			fmt.Fprintf(&b, "%s id=%s until %s\n", t.Name, idText(t.ID), valueText(t.PurgeAt))
		}
	case c.flag("purges"):
		fmt.Fprintf(&b, "%s\n", valueText(i.PendingPurges(c.node("purges"))))
	case c.flag("names"):
		for t := range i.Topics() {
			fmt.Fprintf(&b, "%s id=%s\n", t.Name, idText(t.ID))
		}
	case c.flag("brokers"):
		for n := range i.Brokers() {
			draining := ""
			if i.Draining(n.ID) {
				draining = "draining "
			}
			fmt.Fprintf(&b, "broker %d epoch=%d fenced=%v stopping=%v %sreplicas=%d leaders=%d %s\n",
				n.ID, n.Epoch, n.Fenced, n.Stopping, draining, i.loads[n.ID].replicas, i.loads[n.ID].leaders, valueText(i.BrokerConfigs(n.ID)))
		}
		fmt.Fprintf(&b, "all brokers %s\n", valueText(i.BrokerConfigs(kafka.NoNode)))
	}
	if b.Len() == 0 {
		return "(none)\n"
	}
	return b.String()
}

// differs compares two Images in every part, derived ones included.
func differs(a, b *Image) string {
	switch {
	case a.version != b.version, a.clusterID != b.clusterID, a.producerID != b.producerID, a.partitions != b.partitions:
		return fmt.Sprintf("version %d/%d, producer id %d/%d, partitions %d/%d", a.version, b.version, a.producerID, b.producerID, a.partitions, b.partitions)
	case len(a.brokers)+len(b.brokers) > 0 && !reflect.DeepEqual(a.brokers, b.brokers) || !reflect.DeepEqual(a.voters, b.voters):
		return "brokers or voters differ"
	case len(a.loads)+len(b.loads) > 0 && !maps.Equal(a.loads, b.loads):
		return fmt.Sprintf("loads differ: %v, %v", a.loads, b.loads)
	case !bytes.Equal(a.access.secret, b.access.secret):
		return "SCRAM secrets differ"
	case len(a.configs)+len(b.configs) > 0 && !reflect.DeepEqual(a.configs, b.configs):
		return "broker configs differ"
	}
	for _, why := range []string{
		tablesDiffer("topics", a.topics, b.topics), tablesDiffer("names", a.names, b.names), tablesDiffer("alike", a.alike, b.alike),
		tablesDiffer("trash", a.trash, b.trash), tablesDiffer("purges", a.purges, b.purges),
		tablesDiffer("acls", a.access.acls, b.access.acls), tablesDiffer("scram", a.access.scram, b.access.scram),
	} {
		if why != "" {
			return why
		}
	}
	return ""
}

func tablesDiffer[K comparable, V any](name string, a, b table[K, V]) string {
	if a.size != b.size {
		return fmt.Sprintf("%s: %d and %d entries", name, a.size, b.size)
	}
	for k, v := range a.all() {
		w, ok := b.get(k)
		if !ok || !reflect.DeepEqual(v, w) {
			return fmt.Sprintf("%s: %v: %+v and %+v", name, k, v, w)
		}
	}
	return ""
}
