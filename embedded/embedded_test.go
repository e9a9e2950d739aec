package embedded_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/embedded"
)

func newTestClient(t *testing.T, b *embedded.Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(b.Brokers()...), kgo.AllowAutoTopicCreation())...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

func publish(t *testing.T, c *kgo.Client, topic, value string) {
	t.Helper()
	if err := c.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// TestStart: a record goes in and comes out, and HTTP says ready, with nothing but Start.
func TestStart(t *testing.T) {
	b := embedded.Start(t)
	publish(t, newTestClient(t, b), "made-on-first-use", "hello")
	c := newTestClient(t, b, kgo.ConsumeTopics("made-on-first-use"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if got := c.PollFetches(t.Context()).Records(); len(got) != 1 || string(got[0].Value) != "hello" {
		t.Fatalf("%v", got)
	}
	r, err := http.Get(b.HTTP()[0] + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if text, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusOK {
		t.Errorf("%d %s", r.StatusCode, text)
	}
}

// TestStart_ThreeNodes: topics of Options have leaders and three replicas when Start returns.
func TestStart_ThreeNodes(t *testing.T) {
	b := embedded.Start(t, embedded.Options{
		Nodes: 3, NoAutoCreate: true,
		Topics: []embedded.Topic{{Name: "orders", Partitions: 4, Configs: map[string]string{"retention.ms": "60000"}}, {Name: "one", Replicas: 1}},
	})
	if len(b.Brokers()) != 3 || len(b.HTTP()) != 3 {
		t.Fatal(b.Brokers(), b.HTTP())
	}
	c := newTestClient(t, b)
	topics, err := kadm.NewClient(c).ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(len(topics["orders"].Partitions), topics["orders"].Partitions.NumReplicas(), topics["one"].Partitions.NumReplicas()); got != "4 3 1" {
		t.Error(got)
	}
	publish(t, c, "orders", "x")
	none := newTestClient(t, b, kgo.UnknownTopicRetries(0))
	if err := none.ProduceSync(t.Context(), &kgo.Record{Topic: "nobody-made-it"}).FirstErr(); !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Error(err)
	}
}

// TestOpen_SeveralAndAgain: brokers of one process share nothing, and one that is opened again on its directory has what it had.
func TestOpen_SeveralAndAgain(t *testing.T) {
	dir := t.TempDir()
	first, err := embedded.Open(embedded.Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	other := embedded.Start(t)
	publish(t, newTestClient(t, first), "kept", "x")
	if topics, err := kadm.NewClient(newTestClient(t, other)).ListTopics(t.Context()); err != nil || topics.Has("kept") {
		t.Fatal(topics, err)
	}
	if err := errors.Join(first.Stop(), first.Stop()); err != nil {
		t.Fatal(err)
	}
	again := embedded.Start(t, embedded.Options{DataDir: dir})
	ends, err := kadm.NewClient(newTestClient(t, again)).ListEndOffsets(t.Context(), "kept")
	if end, _ := ends.Lookup("kept", 0); err != nil || end.Offset != 1 {
		t.Fatal(ends, err)
	}
}

// TestStop_WithAConnectionThatAsksNothing: clients open connections ahead of requests; one that has asked nothing yet does not make a stop fail.
func TestStop_WithAConnectionThatAsksNothing(t *testing.T) {
	b, err := embedded.Open(embedded.Options{DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(b.HTTP()[0], "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if r, err := http.Get(b.HTTP()[0] + "/livez"); err != nil { // so that the one before it is accepted
		t.Fatal(err)
	} else {
		_ = r.Body.Close()
	}
	if err := b.Stop(); err != nil {
		t.Error(err)
	}
}

// TestOpen_LeavesNothing: the temporary directory goes with the broker, and with a start that fails.
func TestOpen_LeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	b, err := embedded.Open(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, o := range []embedded.Options{{Nodes: embedded.NodesMax + 1}, {Nodes: -1}} {
		if _, err := embedded.Open(o); !errors.Is(err, embedded.ErrOptions) {
			t.Error(err)
		}
	}
	if _, err := embedded.Open(embedded.Options{Topics: []embedded.Topic{{Name: "no such name!"}}}); !errors.Is(err, kerr.InvalidTopicException) {
		t.Error(err)
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Error(left)
	}
}

// fakeTest is a test that remembers what it was told.
type fakeTest struct {
	*testing.T
	said   strings.Builder
	ends   []func()
	failed bool
}

func (f *fakeTest) Helper()                      {}
func (f *fakeTest) Cleanup(end func())           { f.ends = append(f.ends, end) }
func (f *fakeTest) Failed() bool                 { return f.failed }
func (f *fakeTest) Logf(format string, a ...any) { fmt.Fprintf(&f.said, format, a...) }
func (f *fakeTest) Fatalf(format string, a ...any) {
	f.failed = true
	fmt.Fprintf(&f.said, format, a...)
	panic(f)
}

// TestStart_ShowsLogsOfAFailedTest, and stays silent otherwise.
func TestStart_ShowsLogsOfAFailedTest(t *testing.T) {
	for _, failed := range []bool{false, true} {
		f := &fakeTest{T: t, failed: failed}
		embedded.Start(f)
		for _, end := range f.ends {
			end()
		}
		if shown := strings.Contains(f.said.String(), "msg="); shown != failed {
			t.Errorf("failed: %v, logs: %q", failed, f.said.String())
		}
	}
	f := &fakeTest{T: t}
	defer func() {
		if recover() != f || !strings.Contains(f.said.String(), "Nodes is -1") {
			t.Errorf("%q", f.said.String())
		}
	}()
	embedded.Start(f, embedded.Options{Nodes: -1})
}

// BenchmarkOpen is the time to a broker that accepts work, and to its end.
func BenchmarkOpen(b *testing.B) {
	for _, nodes := range []int{1, 3} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				broker, err := embedded.Open(embedded.Options{Nodes: nodes})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				if err := broker.Stop(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}
