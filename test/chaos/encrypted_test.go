package chaos

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/test/chaos/rig"
)

// secretCanary is put wherever a client can put text; canaryRun bytes of it in a row must be in no file.
const (
	secretCanary = "c4n4ry-7f3e9b1d5a8c2460-c4n4ry-x"
	canaryRun    = 8
)

// readableIn lists the files below dir that hold a run of the canary.
func readableIn(t *testing.T, dir string) (found []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for i := range len(secretCanary) - canaryRun + 1 {
			if bytes.Contains(text, []byte(secretCanary[i:i+canaryRun])) {
				found = append(found, path)
				break
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// carrier publishes the canary as key, value and header, and commits offsets with it, until it is stopped.
type carrier struct {
	stop context.CancelFunc
	done chan struct{}
	sent int
	err  error
}

func carry(c *rig.Cluster, topic string) *carrier {
	ctx, stop := context.WithCancel(context.Background())
	r := &carrier{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		cl, err := kgo.NewClient(kgo.SeedBrokers(slices.Collect(maps.Values(c.Brokers()))...))
		if err != nil {
			r.err = err
			return
		}
		defer cl.Close()
		for ctx.Err() == nil {
			record := &kgo.Record{
				Topic: topic, Key: []byte(secretCanary), Value: []byte(secretCanary), Headers: []kgo.RecordHeader{{Key: secretCanary, Value: []byte(secretCanary)}},
			}
			// To its end: what is given up may be stored all the same.
			if r.err = cl.ProduceSync(context.Background(), record).FirstErr(); r.err != nil {
				return
			}
			r.sent++
			offset := kadm.Offset{Topic: topic, At: int64(r.sent), LeaderEpoch: -1, Metadata: secretCanary}
			_, _ = kadm.NewClient(cl).CommitOffsets(ctx, secretCanary, kadm.Offsets{topic: {0: offset}}) // some meet a node that is down
		}
	}()
	return r
}

// end stops it and returns how many records were acknowledged.
func (r *carrier) end(t *testing.T) int {
	t.Helper()
	r.stop()
	<-r.done
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.sent
}

// TestSecurity9_EncryptedCluster (R151): three encrypted nodes are killed and started again in turn while records come and a key is added to the
// keyring; no run of the canary that was put into keys, values, headers, a group's name and offset metadata is in any file of theirs; without the
// keyring, with another key, with the keyring of before, and with a torn one a node refuses to start by name, and changes nothing.
func TestSecurity9_EncryptedCluster(t *testing.T) {
	dir, bin := t.TempDir(), builtBinary(t, false)
	ring := filepath.Join(dir, "ring")
	keyring := func(args ...string) {
		t.Helper()
		if out, err := exec.Command(bin, append([]string{"keyring"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	keyring("create", ring, "first")
	before := content(t, ring)
	extra := fmt.Sprintf("encryption: {keyring: %s}\n", ring)
	c := newClusterOf(t, rig.Options{Binary: bin, Nodes: 3, Extra: extra})
	ctx := within(t, healMax)
	for _, topic := range []string{"early", "late"} {
		if topic == "late" {
			keyring("add", ring, "second")
		}
		if err := c.CreateTopic(ctx, rig.Topic{Name: topic, Partitions: 1, Replicas: 3, Configs: map[string]string{"segment.bytes": "65536"}}); err != nil {
			t.Fatal(err)
		}
	}
	early, late := carry(c, "early"), carry(c, "late")
	for _, n := range c.Nodes { // each leads one of them at some time, and each starts with both keys
		n.Kill()
		if err := n.Start(); err != nil {
			t.Fatal(err)
		}
		if err := n.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		if err := c.Whole(ctx, 3, "early", "late"); err != nil {
			t.Fatal(err)
		}
	}
	sent := map[string]int{"early": early.end(t), "late": late.end(t)}
	if err := c.StopAll(); err != nil {
		t.Fatal(err)
	}
	for _, n := range c.Nodes {
		if found := readableIn(t, n.Dir); len(found) > 0 {
			t.Errorf("readable in %v", found)
		}
	}
	both := content(t, ring)
	refusesRings(t, ringed{bin, filepath.Dir(c.Node(1).Disk()), ring, extra}, before, both)
	write(t, ring, both)
	if err := c.StartAll(ctx); err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(kgo.SeedBrokers(slices.Collect(maps.Values(c.Brokers()))...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, "early", "late")
	if err != nil {
		t.Fatal(err)
	}
	for topic, n := range sent {
		if end, _ := ends.Lookup(topic, 0); end.Err != nil || end.Offset != int64(n) || n == 0 {
			t.Errorf("%s ends at %d, %d records were acknowledged: %v", topic, end.Offset, n, end.Err)
		}
	}
}

// ringed is a cluster with a keyring: its program, the directory with its configurations, the keyring, and the lines that name it.
type ringed struct{ bin, dir, ring, extra string }

// refusesRings starts node 1 with keyrings that do not fit.
func refusesRings(t *testing.T, c ringed, before, both []byte) {
	t.Helper()
	file := filepath.Join(c.dir, "n1.yaml")
	plain := filepath.Join(c.dir, "plain.yaml")
	write(t, plain, bytes.ReplaceAll(content(t, file), []byte(c.extra), nil))
	other := filepath.Join(c.dir, "other")
	if out, err := exec.Command(c.bin, "keyring", "create", other, "first").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, r := range []struct {
		name, file string
		ring       []byte
		want       string
	}{
		{"no key", plain, both, "is encrypted and no keyring is configured"},
		{"another key", file, content(t, other), "has another key by the name"},
		{"the keys of before", file, before, "lacks the key that the file is encrypted with"},
		{"a torn keyring", file, both[:len(both)-9], "keyring file is not whole"},
	} {
		write(t, c.ring, r.ring)
		out, err := exec.CommandContext(within(t, startTimeMax), c.bin, "serve", "--config", r.file).CombinedOutput()
		if err == nil || !strings.Contains(string(out), r.want) {
			t.Errorf("%s: %v: %s", r.name, err, out)
		}
	}
}

func content(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
