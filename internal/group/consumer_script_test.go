package group

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"strandline.dev/internal/kafka"
)

// testCatalog is the topics of a script at one moment.
type testCatalog struct {
	version uint64
	topics  map[string]byte
	parts   map[string]int32
}

func (c testCatalog) Version() uint64 { return c.version }

func (c testCatalog) Topic(name string) (kafka.TopicID, int32, bool) {
	n, ok := c.parts[name]
	if !ok {
		n = 4
	}
	return testID(c.topics[name]), n, c.topics[name] != 0
}

func (c testCatalog) Check(pattern string) error {
	_, err := CompilePattern(pattern)
	return err
}

// Matching: a reader of a script sees the topics whose names begin with its own.
func (c testCatalog) Matching(pattern, reader string) []string {
	p, err := CompilePattern(pattern)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(c.topics)), func(name string) bool {
		return c.topics[name] == 0 || !p.MatchString(name) || !strings.HasPrefix(name, reader)
	})
}

func (c testCatalog) Gives(pattern, reader, topic string) bool {
	return slices.Contains(c.Matching(pattern, reader), topic)
}

func (s *script) catalog() testCatalog {
	return testCatalog{s.version, maps.Clone(s.topics), maps.Clone(s.parts)}
}

func (s *script) consumerEvent(c *command, g string) Event {
	ev := ConsumerHeartbeat{
		Token: s.token, Group: g, MemberID: c.text("m", ""), Epoch: MemberEpoch(c.number("e", 0)), ClientID: "c", ClientHost: "/h", RebalanceTimeout: -1,
		Catalog: s.catalog(), MustHaveID: c.number("v", 1) >= 1, Random: testID(byte(s.token)),
	}
	said := func(key string) *string {
		if v, ok := c.named[key]; ok {
			return &v
		}
		return nil
	}
	ev.InstanceID, ev.RackID, ev.Assignor, ev.Pattern = said("i"), said("rack"), said("as"), said("re")
	ev.Reader = c.text("reader", "")
	if ev.Epoch == JoinEpoch {
		ev.RebalanceTimeout, ev.Owned = time.Minute, []kafka.TopicPartition{}
		if ev.Pattern == nil {
			ev.Topics = []string{"t"}
		}
	}
	if c.has("bare") {
		ev.RebalanceTimeout, ev.Topics, ev.Owned = -1, nil, nil
	}
	ev.RebalanceTimeout = c.duration("r", ev.RebalanceTimeout)
	if t, ok := c.named["t"]; ok {
		ev.Topics = slices.DeleteFunc(strings.Split(t, ","), func(name string) bool { return name == "-" })
	}
	if own, ok := c.named["own"]; ok {
		ev.Owned = []kafka.TopicPartition{}
		for word := range strings.SplitSeq(own, ",") {
			if name, p, ok := strings.Cut(word, "/"); ok {
				ev.Owned = append(ev.Owned, kafka.TopicPartition{Topic: s.topicID(name), Partition: int32(c.parse(p))})
			}
		}
	}
	return ev
}

func showConsumerRecord(kv KV) string {
	version := int16(kv.Key[1])
	named := 1
	if version == consumerMemberKey || version == consumerTargetKey || version == consumerCurrentKey {
		named = 2
	}
	names, _ := readConsumerKey(kv.Key[2:], named)
	for i := range names {
		names[i] = short(names[i])
	}
	what := map[int16]string{
		consumerEpochKey: "epoch of", consumerMemberKey: "member", consumerTargetEpochKey: "target epoch of", consumerTargetKey: "target", consumerCurrentKey: "current",
	}[version] + " " + strings.Join(names, " ")
	if kv.Value == nil {
		return what + " removed"
	}
	s := NewShard(Config{})
	must(s.Apply(kv.Key, kv.Value, recordTime))
	if s.groups[names[0]] == nil {
		return what + " = nothing"
	}
	c := &s.groups[names[0]].consumer
	if named == 2 {
		whole, _ := readConsumerKey(kv.Key[2:], 2)
		names[1] = whole[1]
	}
	switch version {
	case consumerEpochKey:
		return fmt.Sprintf("%s = %d at=%s", what, c.epoch, stamp(c.sinceMs))
	case consumerTargetEpochKey:
		return fmt.Sprintf("%s = %d", what, c.targetEpoch)
	case consumerTargetKey:
		return what + " =" + showPartitions(c.targets[names[1]])
	case consumerMemberKey:
		m := c.members[names[1]]
		classic := ""
		if m.classic != nil {
			classic = fmt.Sprintf(" classic s=%v", milliseconds(m.classic.sessionMs)) + showList(m.classic.protocols, func(p Protocol) string { return p.Name })
		}
		return fmt.Sprintf("%s reads=%s re=%q instance=%q rack=%q r=%v as=%q%s", what, strings.Join(m.topics, "+"), m.pattern, m.instance, m.rack,
			time.Duration(m.rebalanceMs)*time.Millisecond, m.subscription.assignor, classic)
	}
	m := c.members[names[1]]
	if m == nil {
		return what + " = nothing"
	}
	return fmt.Sprintf("%s e=%d was=%d %s has%s gives%s", what, m.epoch, m.previous, [...]string{"settled", "revoking", "waiting"}[m.state], showHoldings(m.assigned), showHoldings(m.revoked))
}

// testNames are the letters of the topics that scripts use.
var testNames = map[kafka.TopicID]string{testID(1): "t", testID(2): "u", testID(3): "v"}

func showPartitions(list []kafka.TopicPartition) string {
	return showList(list, func(tp kafka.TopicPartition) string { return fmt.Sprintf("%s/%d", testNames[tp.Topic], tp.Partition) })
}

func showHoldings(h holdings) string {
	return showList(sortedHoldings(h), func(tp kafka.TopicPartition) string {
		return fmt.Sprintf("%s/%d@%d", testNames[tp.Topic], tp.Partition, h[tp])
	})
}

func showConsumerReply(r *ConsumerHeartbeatReply) string {
	if r.Code != kafka.None {
		return fmt.Sprintf("hb %v: %s", r.Code, r.Message)
	}
	owns := " as before"
	if r.Assigned != nil {
		owns = " owns" + showPartitions(r.Assigned)
	}
	return fmt.Sprintf("hb %s e=%d%s", r.MemberID, r.Epoch, owns)
}

func showConsumers(d ConsumerDescription) string {
	return fmt.Sprintf("%s %v %s e=%d target=%d by=%s", d.Group, d.Code, d.State, d.Epoch, d.TargetEpoch, d.Assignor) + showList(d.Members, func(m DescribedConsumer) string {
		kind := ""
		if m.IsClassic {
			kind = " classic"
		}
		return fmt.Sprintf("[%s%s instance=%s e=%d reads=%s re=%q has%s target%s]", short(m.MemberID), kind, m.InstanceID, m.Epoch, strings.Join(m.Topics, "+"), m.Pattern, showPartitions(m.Assigned), showPartitions(m.Target))
	})
}
