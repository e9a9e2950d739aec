package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/internal/audit"
	"strandline.dev/internal/auth"
	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/node"
	"strandline.dev/internal/sys"
)

// TestR152_AuditOnTheCommandLine: what was changed is shown with who, what, before and after, by each filter, also after a restart; and the chains
// are verified.
func TestR152_AuditOnTheCommandLine(t *testing.T) {
	dir := t.TempDir()
	c, err := config.Build(map[string]string{
		"node.id": "1", "data.dir": filepath.Join(dir, "data"), "http.address": config.NoHTTP, "auth.audit": "on",
		"listeners.0.name": "clients", "listeners.0.address": "127.0.0.1:0",
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var n *node.Node
	start := func() {
		if n, err = node.Start(ctx, node.Options{Config: c, Machine: sys.Real(), Log: newLogger(c, new(bytes.Buffer))}); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) string {
		t.Helper()
		a := newApp()
		var out, errOut bytes.Buffer
		a.stdin, a.stdout, a.stderr = strings.NewReader(""), &out, &errOut
		a.lookup = func(string) (string, bool) { return "", false }
		a.configDir = func() (string, error) { return dir, nil }
		if code := run(append(args, "--brokers", n.KafkaAddresses()[0]), a); code != 0 {
			t.Fatalf("%v: exit %d, %s%s", args, code, out.String(), errOut.String())
		}
		return out.String()
	}
	start()
	command("topic", "create", "orders", "-p", "2", "-r", "1")
	command("topic", "set", "orders", "retention.ms=7200000")
	if err := n.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	start()
	defer n.Stop(ctx)
	command("topic", "delete", "orders", "-y")

	var lines []audit.Line
	for text := range strings.Lines(command("audit", "-o", "json", "--resource", "Topic:orders")) {
		var l audit.Line
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	want := []struct{ api, before, after string }{
		{"CreateTopics", "", "orders: 2 partitions"}, {"AlterConfigs", "retention.ms", "retention.ms=7200000"}, {"DeleteTopics", "retention.ms=7200000", ""},
	}
	if len(lines) != len(want) {
		t.Fatalf("%+v", lines)
	}
	for i, w := range want {
		l := lines[i]
		if l.API != w.api || l.Outcome != "done" || l.Principal != "User:ANONYMOUS" || !strings.HasPrefix(l.Peer, "127.0.0.1:") || l.Node != 1 ||
			!strings.Contains(l.Before, w.before) || !strings.Contains(l.After, w.after) {
			t.Errorf("%+v, want %+v", l, w)
		}
	}
	auditFilters(t, command)
}

// auditFilters asks for parts of a trail of three changes.
func auditFilters(t *testing.T, command func(...string) string) {
	t.Helper()
	for _, none := range [][]string{{"--until", "1h"}, {"--principal", "User:other"}, {"--outcome", "failed"}, {"--outcome", "unknown"}, {"--since", "2100-01-01T00:00:00Z"}} {
		if out := command(append([]string{"audit", "-o", "json"}, none...)...); out != "" {
			t.Errorf("%v: %s", none, out)
		}
	}
	if out := command("audit", "--since", "1h", "--outcome", "done", "--principal", "User:ANONYMOUS"); strings.Count(out, "Topic:orders") != 3 {
		t.Error(out)
	}
	if out := command("audit", "--verify"); strings.Count(out, "\n") != 4 {
		t.Error(out)
	}
}

// TestP45_ReadingNamesWhatIsBroken: an altered entry is named; one that was delivered twice is shown once, and a change without its end is unknown.
func TestP45_ReadingNamesWhatIsBroken(t *testing.T) {
	r := audit.NewReading(audit.Query{To: time.Now().Add(time.Hour), Most: 100}, []int32{0})
	var last audit.Hash
	next := int64(0)
	add := func(e audit.Entry, previous audit.Hash) {
		e.Sequence, e.Previous, e.Run, e.At, e.Until, e.Count = uint64(next), previous, kafka.ID{1}, time.Now(), time.Now(), 1
		value := e.Append(nil)
		last = audit.HashOf(value)
		if err := r.Take(0, next, value); err != nil {
			t.Fatal(err)
		}
		next++
	}
	add(audit.Entry{Number: 1, What: audit.Begun, API: "A"}, last)
	add(audit.Entry{Number: 1, What: audit.Begun, API: "A"}, last)
	add(audit.Entry{Number: 2, Of: 1, What: auth.Change, API: "A", Outcome: "no"}, last)
	add(audit.Entry{Number: 3, What: audit.Begun, API: "B"}, last)
	broken, breaks := r.Broken()
	if lines := r.Lines(); breaks != 0 || len(lines) != 2 || lines[0].Outcome != "failed" || lines[0].Why != "no" || lines[1].Outcome != "unknown" {
		t.Errorf("%v %+v", broken, lines)
	}
	add(audit.Entry{Number: 4, What: auth.Denied, API: "C"}, audit.Hash{9})
	if broken, breaks = r.Broken(); breaks != 1 || !strings.Contains(broken[0], "entry 4") {
		t.Error(broken)
	}
	for _, bad := range []*auditQuery{{since: "yesterday"}, {until: "x"}, {outcome: "good"}} {
		if bad.parse(time.Now()) == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}

// TestR152_ActsOnAStoppedNode: what is done to a node's directory while it is stopped is written down first, and is in the trail once it runs: who, what,
// and how it ended.
func TestR152_ActsOnAStoppedNode(t *testing.T) {
	dir := t.TempDir()
	data, file := filepath.Join(dir, "data"), filepath.Join(dir, "node.yaml")
	text := fmt.Sprintf("node: {id: 1}\ndata: {dir: %q}\nhttp: {address: none}\nauth: {audit: \"on\"}\nlisteners:\n  - {name: clients, address: 127.0.0.1:0}\n", data)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := fileConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	start := func() *node.Node {
		t.Helper()
		n, err := node.Start(ctx, node.Options{Config: c, Machine: sys.Real(), Log: newLogger(c, new(bytes.Buffer))})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := start().Stop(ctx); err != nil {
		t.Fatal(err)
	}
	lost := "0123456789abcdef0123456789abcdef-0"
	if err := os.MkdirAll(filepath.Join(data, "quarantine", lost), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		code int
		args []string
	}{
		{0, []string{"node", "quarantine", "drop", lost, "--config", file, "-y"}},
		{1, []string{"node", "quarantine", "drop", lost, "--config", file, "-y"}},
		{0, []string{"cluster", "recover", "--from-this-node", "--config", file, "-y"}},
	} {
		if code, out, errOut := command(t, "", one.args...); code != one.code {
			t.Fatalf("%q: exit %d: %s%s", one.args, code, out, errOut)
		}
	}
	n := start()
	defer n.Stop(ctx)
	gone := func() bool {
		_, err := os.Stat(filepath.Join(data, "offline-acts"))
		return errors.Is(err, fs.ErrNotExist)
	}
	for !gone() {
		select {
		case <-ctx.Done():
			t.Fatal("what was done waits still")
		case <-time.After(10 * time.Millisecond):
		}
	}
	_, shown, _ := command(t, "", "audit", "-o", "json", "--brokers", n.KafkaAddresses()[0])
	for want, times := range map[string]int{`"Quarantine:` + lost: 2, "is not in quarantine": 1, "ClusterRecover": 1, "OS:" + osUser(): 3, "on the stopped node": 3} {
		if got := strings.Count(shown, want); got != times {
			t.Errorf("%q is there %d times, want %d: %s", want, got, times, shown)
		}
	}
}

// TestP45_EmptyChainsArePassedOver: a chain whose entries are all removed, before it is listed or before it is read, ends no reading and breaks nothing; its
// real end is told, without a hash.
func TestP45_EmptyChainsArePassedOver(t *testing.T) {
	c, err := config.Build(map[string]string{
		"node.id": "1", "data.dir": filepath.Join(t.TempDir(), "data"), "http.address": config.NoHTTP, "listeners.0.name": "clients", "listeners.0.address": "127.0.0.1:0",
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	n, err := node.Start(ctx, node.Options{Config: c, Machine: sys.Real(), Log: newLogger(c, new(bytes.Buffer))})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop(ctx)
	s, err := openSession(settings{brokers: n.KafkaAddresses(), timeout: 30 * time.Second}, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	const topic = "trail" // nobody writes to the trail itself
	if _, err := s.admin.CreateTopic(ctx, 4, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	for p := range int32(3) { // the last chain was never written
		var last audit.Hash
		for i := range 5 {
			e := audit.Entry{Sequence: uint64(i), Previous: last, Number: uint64(i + 1), At: time.Now(), Until: time.Now(), Count: 1, What: auth.Denied}
			value := e.Append(nil)
			last = audit.HashOf(value)
			if err := s.client.ProduceSync(ctx, &kgo.Record{Topic: topic, Partition: p, Value: value}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(p int32, below int64) {
		t.Helper()
		var to kadm.Offsets
		to.AddOffset(topic, p, below, -1)
		if got, err := s.admin.DeleteRecords(ctx, to); err != nil || got.Error() != nil {
			t.Fatal(err, got.Error())
		}
	}
	remove(0, 5)
	reader, err := (&auditQuery{to: time.Now().Add(time.Hour)}).begin(ctx, s, topic)
	if err != nil {
		t.Fatal(err)
	}
	if reader.left[0] != 0 || len(reader.left) != 2 {
		t.Errorf("left to read: %v", reader.left)
	}
	remove(1, 5)
	remove(2, 3)
	if err := reader.readOn(ctx); err != nil {
		t.Fatal(err)
	}
	broken, breaks := reader.r.Broken()
	chains := reader.r.Chains()
	for i, want := range []audit.ChainState{{Next: 5}, {Chain: 1, Next: 5}, {Chain: 2, Next: 5, Entries: 2, LastHash: chains[2].LastHash}, {Chain: 3}} {
		if chains[i] != want {
			t.Errorf("%+v, want %+v", chains[i], want)
		}
	}
	if breaks != 0 || len(chains[2].LastHash) != 64 {
		t.Errorf("%v %+v", broken, chains)
	}
}
