package group

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
)

// command is one line of a script.
type command struct {
	verb  string
	named map[string]string
	plain []string
	err   error
}

func parseCommand(line string) *command {
	words := strings.Fields(line)
	c := &command{verb: words[0], named: map[string]string{}}
	for _, w := range words[1:] {
		if k, v, ok := strings.Cut(w, "="); ok && !strings.Contains(k, "/") {
			c.named[k] = v
		} else {
			c.plain = append(c.plain, w)
		}
	}
	return c
}

func (c *command) has(word string) bool { return slices.Contains(c.plain, word) }

func (c *command) text(key, otherwise string) string {
	if v, ok := c.named[key]; ok {
		return strings.ReplaceAll(v, "_", " ")
	}
	return otherwise
}

func (c *command) list(key string) []string {
	if v := c.text(key, ""); v != "" {
		return strings.Split(v, ",")
	}
	return nil
}

func (c *command) number(key string, otherwise int64) int64 {
	if v, ok := c.named[key]; ok {
		return c.parse(v)
	}
	return otherwise
}

func (c *command) parse(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	c.fail(err)
	return n
}

func (c *command) duration(key string, otherwise time.Duration) time.Duration {
	if v, ok := c.named[key]; ok {
		return c.durationOf(v)
	}
	return otherwise
}

func (c *command) durationOf(s string) time.Duration {
	d, err := time.ParseDuration(s)
	c.fail(err)
	return d
}

func (c *command) fail(err error) {
	if c.err == nil {
		c.err = err
	}
}

var (
	shortID = regexp.MustCompile(`^(.*)\.(\d+)$`)
	namedID = regexp.MustCompile(`[\w-]+\.\d+\b`)
	longID  = regexp.MustCompile(`([\w.-]*?)-00000000-0000-0000-0000-0*(\d+)\b`)
)

// memberID makes the real id of "a" or "c.1".
func (s *script) memberID(short string) string {
	if id, ok := s.ids[short]; ok {
		return id
	}
	if m := shortID.FindStringSubmatch(short); m != nil {
		return fmt.Sprintf("%s-00000000-0000-0000-0000-%012s", m[1], m[2])
	}
	return short
}

func short(text string) string { return longID.ReplaceAllString(text, "$1.$2") }

func (s *script) event(c *command) Event {
	g, m, gen := c.text("g", "G"), s.memberID(c.text("m", "")), Generation(c.number("gen", -1))
	switch c.verb {
	case "join":
		return s.joinEvent(c, g, m)
	case "sync":
		ev := Sync{Token: s.token, Group: g, MemberID: m, InstanceID: c.text("i", ""), Generation: gen, Catalog: s.catalog()}
		if c.named["type"] != "" || c.named["name"] != "" {
			ev.Protocol = &ProtocolChoice{Type: c.text("type", "consumer"), Name: c.text("name", "range")}
		}
		for _, give := range c.list("give") {
			who, what, _ := strings.Cut(give, ":")
			ev.Assignments = append(ev.Assignments, MemberAssignment{MemberID: s.memberID(who), Assignment: s.assignment(what)})
		}
		return ev
	case "beat":
		return Heartbeat{Token: s.token, Group: g, MemberID: m, InstanceID: c.text("i", ""), Generation: gen}
	case "leave":
		ev := Leave{Token: s.token, Group: g}
		for _, who := range c.plain {
			id, instance, _ := strings.Cut(who, "@")
			if i, ok := strings.CutPrefix(who, "i:"); ok {
				id, instance = "", i
			}
			ev.Members = append(ev.Members, LeavingMember{MemberID: s.memberID(id), InstanceID: instance, Reason: c.text("why", "")})
		}
		return ev
	case "commit":
		return s.commitEvent(c, g, m, gen)
	}
	return s.adminEvent(c, g)
}

func (s *script) adminEvent(c *command, g string) Event {
	switch c.verb {
	case "hb":
		return s.consumerEvent(c, g)
	case "look":
		return DescribeConsumerGroups{Token: s.token, Groups: c.plain}
	case "fetch":
		ev := FetchOffsets{Token: s.token, Group: g, All: c.has("all"), CurrentID: s.topicID}
		if m := c.text("m", ""); m != "" {
			ev.Member = &FetchingMember{ID: m, Epoch: MemberEpoch(c.number("e", -1))}
		}
		if !ev.All {
			for _, t := range partitionsOf(c) {
				ev.Topics = append(ev.Topics, FetchTopic{Name: t.Name, ID: s.topicID(t.Name), Partitions: t.Partitions})
			}
		}
		return ev
	case "describe":
		return DescribeGroups{Token: s.token, Groups: c.plain}
	case "list":
		return ListGroups{Token: s.token, States: c.list("states"), Types: c.list("types")}
	case "delete":
		return DeleteGroups{Token: s.token, Groups: c.plain}
	case "seek":
		if c.has("undo") {
			return SeekOffsets{Token: s.token, Group: g, Undo: true}
		}
		return SeekOffsets{Token: s.token, Group: g, Topics: s.commitEvent(c, g, "", -1).(CommitOffsets).Topics}
	case "widen":
		ev := TopicsWidened{Catalog: s.catalog(), Width: func(id kafka.TopicID) int32 { return s.widths[id] }}
		for _, name := range slices.Sorted(maps.Keys(c.named)) {
			id := s.topicID(name)
			ev.Topics = append(ev.Topics, Widened{Name: name, ID: id, From: s.widths[id], To: int32(c.number(name, 0))})
			s.widths[id] = int32(c.number(name, 0))
		}
		return ev
	case "forget":
		return DeleteOffsets{Token: s.token, Group: g, Topics: partitionsOf(c), Catalog: s.catalog()}
	case "cancel":
		return Cancel{Token: uint64(c.parse(c.plain[0]))}
	case "purge":
		var ids []kafka.TopicID
		for _, id := range c.plain {
			ids = append(ids, testID(byte(c.parse(id))))
		}
		return TopicsDeleted{IDs: ids}
	}
	return nil
}

func (s *script) joinEvent(c *command, g, m string) Event {
	v := c.number("v", 3)
	ev := Join{
		Token: s.token, Group: g, MemberID: m, InstanceID: c.text("i", ""), ClientID: c.text("c", "c"), ClientHost: "/10.0.0.1",
		ProtocolType: c.text("type", "consumer"), SessionTimeout: c.duration("s", 10*time.Second), RebalanceTimeout: c.duration("r", time.Minute),
		RequireMemberID: v >= 4, CanSkip: v >= 9, Reason: c.text("why", ""), Catalog: s.catalog(),
	}
	n := s.token
	for i := 15; n > 0; i-- { // the digits of the token, as hex digits
		ev.Random[i] = byte(n%10 + n/10%10*16)
		n /= 100
	}
	if name := c.text("as", ""); name != "" {
		s.ids[name] = newMemberID(&ev)
		s.names[short(s.ids[name])] = name
	}
	for p := range strings.SplitSeq(c.text("p", "range:t"), ",") {
		name, topics, _ := strings.Cut(p, ":")
		if p != "-" {
			ev.Protocols = append(ev.Protocols, Protocol{Name: name, Metadata: testMetadata(ev.ProtocolType, topics, c)})
		}
	}
	return ev
}

// assignment encodes "t/0+t/1" as leaders of consumers do; anything else is itself.
func (s *script) assignment(text string) []byte {
	if !strings.Contains(text, "/") {
		return []byte(text)
	}
	plain, userData, _ := strings.Cut(text, "!")
	a := kmsg.NewConsumerMemberAssignment()
	a.UserData = []byte(userData)
	for _, t := range partitionsOf(&command{plain: strings.Split(plain, "+")}) {
		a.Topics = append(a.Topics, kmsg.ConsumerMemberAssignmentTopic{Topic: t.Name, Partitions: t.Partitions})
	}
	return a.AppendTo(nil)
}

// testMetadata encodes what a member reads: a consumer's as consumers do, others' as plain text.
func testMetadata(protocolType, topics string, c *command) []byte {
	if raw, ok := strings.CutPrefix(topics, "!"); ok || protocolType != consumerType {
		return []byte(raw)
	}
	meta := kmsg.NewConsumerMemberMetadata()
	meta.Topics = strings.Split(topics, "+")
	if own, ok := c.named["own"]; ok {
		meta.Version, meta.Generation = 2, int32(c.number("ogen", -1))
		for _, t := range partitionsOf(&command{plain: strings.FieldsFunc(own, func(r rune) bool { return r == ',' || r == '-' })}) {
			meta.OwnedPartitions = append(meta.OwnedPartitions, kmsg.ConsumerMemberMetadataOwnedPartition{Topic: t.Name, Partitions: t.Partitions})
		}
	}
	return meta.AppendTo(nil)
}

func (s *script) commitEvent(c *command, g, m string, gen Generation) Event {
	ev := CommitOffsets{Token: s.token, Group: g, MemberID: m, InstanceID: c.text("i", ""), Generation: gen, KnowsGroupIDNotFound: c.number("v", 8) >= 9}
	for _, word := range c.plain {
		where, what, _ := strings.Cut(word, "=")
		name, partition, _ := strings.Cut(where, "/")
		parts := append(strings.SplitN(what, ":", 3), "-1", "")
		p := CommitPartition{Partition: int32(c.parse(partition)), Offset: kafka.Offset(c.parse(parts[0])), LeaderEpoch: kafka.LeaderEpoch(c.parse(parts[1])), Metadata: parts[2]}
		if n, ok := strings.CutPrefix(p.Metadata, "x"); ok && n != "" { // x5000: so many letters
			p.Metadata = strings.Repeat("x", int(c.parse(n)))
		}
		if s.topicID(name).IsZero() {
			p.Refused = kafka.UnknownTopicOrPartition
		}
		if i := len(ev.Topics) - 1; i >= 0 && ev.Topics[i].Name == name {
			ev.Topics[i].Partitions = append(ev.Topics[i].Partitions, p)
			continue
		}
		ev.Topics = append(ev.Topics, CommitTopic{Name: name, ID: s.topicID(name), Width: s.widths[s.topicID(name)], Partitions: []CommitPartition{p}})
	}
	return ev
}

func (s *script) topicID(name string) kafka.TopicID { return testID(s.topics[name]) }

func partitionsOf(c *command) (out []TopicPartitions) {
	for _, word := range c.plain {
		name, partition, _ := strings.Cut(word, "/")
		if i := len(out) - 1; i >= 0 && out[i].Name == name {
			out[i].Partitions = append(out[i].Partitions, int32(c.parse(partition)))
			continue
		}
		out = append(out, TopicPartitions{Name: name, Partitions: []int32{int32(c.parse(partition))}})
	}
	return out
}
