package metadata

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
)

var rewrite = flag.Bool("rewrite", false, "write the present output into testdata")

// TestScripts runs testdata/*.txt: each block is an event in one line, "----", and the full trace: every record of the decision and the reply. The
// records are applied before the next block; each Image must survive a snapshot.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { runScript(t, file) })
	}
}

func runScript(t *testing.T, file string) {
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := &script{t: t, image: Empty(), version: 0, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	var got strings.Builder
	for block := range strings.SplitSeq(strings.TrimRight(string(want), "\n"), "\n\n") {
		var comments []string
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		for len(lines) > 0 && strings.HasPrefix(lines[0], "#") {
			comments, lines = append(comments, lines[0]), lines[1:]
		}
		for _, c := range comments {
			got.WriteString(c + "\n")
		}
		if len(lines) > 0 {
			fmt.Fprintf(&got, "%s\n----\n%s", lines[0], s.run(lines[0]))
		}
		got.WriteString("\n")
	}
	text := strings.TrimRight(got.String(), "\n") + "\n"
	if *rewrite {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if text != string(want) {
		t.Errorf("%s: trace differs; run with -rewrite and read the difference\n%s", file, firstDifference(string(want), text))
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(w), len(g))
}

// script is the state between the blocks of a file.
type script struct {
	t       *testing.T
	image   *Image
	version uint64
	now     time.Time
}

// run performs one line and returns its trace.
func (s *script) run(line string) string {
	c := parseCommand(s.t, line)
	switch c.verb {
	case "wait":
		s.now = s.now.Add(c.duration("for"))
		return ""
	case "show":
		return show(s.image, c)
	case "apply": // a raw partition record, as the cluster release's ISR changes will write
		return s.commit(Decision{Records: []Record{rawPartition(s.image, c)}})
	}
	d := s.image.Decide(s.event(c))
	if len(d.Records) > 0 {
		return s.commit(d)
	}
	return trace(s.image, d)
}

// commit applies a decision as one entry, and record by record, and through a snapshot: all must agree.
func (s *script) commit(d Decision) string {
	s.version++
	out := trace(s.image, d)
	rs, err := DecodeRecords(EncodeRecords(nil, d.Records))
	if err != nil {
		s.t.Fatalf("records do not survive their encoding: %v", err)
	}
	whole, err := s.image.Apply(s.version, rs)
	if err != nil {
		s.t.Fatalf("apply: %v", err)
	}
	single := s.image
	for _, r := range rs {
		if single, err = single.Apply(s.version, []Record{r}); err != nil {
			s.t.Fatalf("apply one by one: %v", err)
		}
	}
	a, b := EncodeImage(nil, whole), EncodeImage(nil, single)
	if !bytes.Equal(a, b) {
		s.t.Fatalf("the grouping of records changes the outcome")
	}
	back, err := DecodeImage(a)
	if err != nil {
		s.t.Fatalf("snapshot: %v", err)
	}
	if why := differs(whole, back); why != "" {
		s.t.Fatalf("snapshot: %s", why)
	}
	s.image = back
	return out
}

// event builds the event of a command.
func (s *script) event(c command) Event {
	who := kafka.Principal{Type: "User", Name: c.text("as", "admin")}
	switch c.verb {
	case "register":
		return RegisterBroker{
			Now: s.now, NextVersion: s.version + 1, Node: c.node("node"), Incarnation: c.id("incarnation"), Directory: c.id("dir"),
			StartNumber: uint64(c.number("start", 1)), BootID: c.text("boot", "boot-1"), Rack: c.text("rack", ""),
			ClusterAddress: "host:1", Listeners: []Listener{{"plain", "host", 9092}}, Roles: []string{"controller", "broker"},
			Unclean: s.replicas(c.list("unclean")), Damaged: s.replicas(c.list("damaged")), HolderSilent: c.duration("silent"), Former: c.flag("former"),
		}
	case "ready":
		return BrokerReady{Now: s.now, Node: c.node("node"), Epoch: s.epoch(c)}
	case "fence":
		return FenceBroker{Now: s.now, Node: c.node("node"), Epoch: s.epoch(c), Stopping: c.flag("stopping")}
	case "create":
		return CreateTopics{
			Now: s.now, Principal: who, Topics: c.newTopics(), ValidateOnly: c.flag("validate-only"), Seed: uint64(c.number("seed", 1)),
			DefaultPartitions: 2, DefaultReplicationFactor: 1,
		}
	case "add-partitions":
		ev := CreatePartitions{Now: s.now, Principal: who, ValidateOnly: c.flag("validate-only"), Seed: 1}
		for _, name := range c.list("topic") {
			ev.Topics = append(ev.Topics, NewPartitions{
				Name: name, Count: int32(c.number("count", 0)), Assignments: c.assignments("assign"), ExpectedVersion: c.number("version", 0),
			})
		}
		return ev
	}
	return s.topicEvent(c, who)
}

func (s *script) topicEvent(c command, who kafka.Principal) Event {
	switch c.verb {
	case "delete":
		ev := DeleteTopics{Now: s.now, Principal: who, Dev: c.flag("dev")}
		for _, name := range c.list("topic") {
			ev.Topics = append(ev.Topics, DeleteTopic{Name: name, ExpectedVersion: c.number("version", 0)})
		}
		for _, id := range c.list("id") {
			ev.Topics = append(ev.Topics, DeleteTopic{ID: testID(id), Name: c.text("also", "")})
		}
		return ev
	case "restore":
		return RestoreTopic{Now: s.now, Principal: who, ID: c.id("id"), Name: c.text("topic", ""), As: c.text("under", "")}
	case "purge":
		return PurgeTopic{Now: s.now, Principal: who, ID: c.id("id")}
	case "expire":
		return ExpireTrash{Now: s.now}
	case "purged":
		return ReplicasPurged{Node: c.node("node"), Partitions: []kafka.TopicPartition{{Topic: c.id("id"), Partition: int32(c.number("partition", 0))}}}
	case "alter":
		return AlterConfigs{
			Now: s.now, Principal: who, Resource: c.resource(), Ops: c.ops(), Replace: c.flag("replace"), ValidateOnly: c.flag("validate-only"),
			ExpectedVersion: c.number("version", 0), Dev: c.flag("dev"),
		}
	case "elect":
		return ElectLeaders{Principal: who, Unclean: c.flag("unclean"), All: c.flag("all"), Partitions: c.partitions()}
	case "assign":
		ev := AlterAssignments{Principal: who, KeepFactor: c.flag("keep-factor")}
		for _, n := range c.partitions() {
			ev.Partitions = append(ev.Partitions, NewAssignment{NamedPartition: n, Replicas: nodeList(s.t, c.args["to"]), Cancel: c.flag("cancel")})
		}
		return ev
	case "producer-ids":
		return AllocateProducerIDs{Node: c.node("node"), Epoch: s.epoch(c), Count: c.number("count", 1000)}
	case "finish":
		return FinishTopics{Now: s.now}
	}
	return s.replicaEvent(c, who)
}

// epoch is the broker's own epoch unless the command gives one.
func (s *script) epoch(c command) kafka.BrokerEpoch {
	own := int64(0)
	if b := s.image.Broker(c.node("node")); b != nil {
		own = int64(b.Epoch)
	}
	return kafka.BrokerEpoch(c.number("epoch", own))
}

// replicas reads "topic-0" items.
func (s *script) replicas(items []string) []kafka.TopicPartition {
	var out []kafka.TopicPartition
	for _, item := range items {
		i := strings.LastIndexByte(item, '-')
		p, err := strconv.Atoi(item[i+1:])
		top := s.image.Topic(item[:i])
		if err != nil || top == nil {
			s.t.Fatalf("no partition %q", item)
		}
		out = append(out, kafka.TopicPartition{Topic: top.ID, Partition: int32(p)})
	}
	return out
}
