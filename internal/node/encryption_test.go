package node

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/sealed"
	"strandline.dev/internal/sys/systest"
)

const (
	marker   = "0123456789abcdef-CANARY-fedcba98"
	ringFile = "/keys/ring"
)

// filesWith lists the files below dir that have a part of the marker.
func filesWith(t *testing.T, fs sys.FS, dir string) (found []string) {
	t.Helper()
	list, err := fs.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		name := filepath.Join(dir, e.Name)
		if e.IsDir {
			found = append(found, filesWith(t, fs, name)...)
			continue
		}
		b, err := sys.ReadFile(fs, name, 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		for i := range len(marker) - 7 {
			if bytes.Contains(b, []byte(marker[i:i+8])) {
				found = append(found, name)
				break
			}
		}
	}
	return found
}

// carry puts the marker wherever a client can put text, and returns the end of the topic.
func (n *fullNode) carry(topic string, records int) int64 {
	n.t.Helper()
	for range records {
		bu := record.NewBuilder(record.None)
		bu.Add(1, []byte(marker), []byte(marker), []record.Header{{Key: marker, Value: []byte(marker)}})
		p := kmsg.NewProduceRequestTopicPartition()
		p.Records = bu.Build()
		pt := kmsg.NewProduceRequestTopic()
		pt.Topic, pt.Partitions = topic, append(pt.Partitions, p)
		req := kmsg.NewPtrProduceRequest()
		req.Acks, req.TimeoutMillis, req.Topics = -1, 5000, append(req.Topics, pt)
		if got := request[*kmsg.ProduceResponse](n, req).Topics[0].Partitions[0]; got.ErrorCode != 0 {
			n.t.Fatalf("publish: %v", kafka.ErrorCode(got.ErrorCode))
		}
	}
	p := kmsg.NewOffsetCommitRequestTopicPartition()
	text := marker
	p.Offset, p.Metadata = 1, &text
	ct := kmsg.NewOffsetCommitRequestTopic()
	ct.Topic, ct.Partitions = topic, append(ct.Partitions, p)
	commit := kmsg.NewPtrOffsetCommitRequest()
	commit.Group, commit.Topics = marker, append(commit.Topics, ct)
	for {
		find := kmsg.NewPtrFindCoordinatorRequest()
		find.CoordinatorKeys = []string{marker}
		request[*kmsg.FindCoordinatorResponse](n, find)
		switch code := kafka.ErrorCode(request[*kmsg.OffsetCommitResponse](n, commit).Topics[0].Partitions[0].ErrorCode); code {
		case kafka.None:
			return n.end(topic)
		case kafka.CoordinatorNotAvailable, kafka.NotCoordinator, kafka.CoordinatorLoadInProgress:
		default:
			n.t.Fatalf("commit: %v", code)
		}
	}
}

// refusals starts the node with keyrings that do not fit.
func refusals(t *testing.T, fs *systest.FS, foreign, both []byte) {
	t.Helper()
	for _, r := range []struct {
		name string
		ring []byte
		want error
	}{
		{"no keyring", nil, sealed.ErrNoKeys}, {"another key", foreign, sealed.ErrWrongKey}, {"torn", both[:len(both)-9], sealed.ErrTornKeyring},
	} {
		c := fullConfig()
		if r.ring != nil {
			c.Encryption.Keyring = ringFile
			if err := sys.WriteFileAtomic(fs, ringFile, r.ring); err != nil {
				t.Fatal(err)
			}
		}
		node, err := Start(t.Context(), Options{Config: c, Machine: systest.Machine(fs, nil, nil), Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			node.Stop(t.Context())
		}
		if !errors.Is(err, r.want) {
			t.Errorf("%s: %v", r.name, err)
		}
	}
}

// TestR151_ADataDirectoryHasNothingReadable: no run of a marker that was put into keys, values, headers, a group's name, offset metadata and a
// topic's name is in any file of the data directory, also with a key added while the node runs; and each of no key, another key, a key of before
// and a torn file is refused by name at the start, and harms nothing.
func TestR151_ADataDirectoryHasNothingReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		for _, err := range []error{fs.MkdirAll("/keys", 0o700), sealed.AddKey(fs, ringFile, "first", true)} {
			if err != nil {
				t.Fatal(err)
			}
		}
		old, err := sys.ReadFile(fs, ringFile, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		c := fullConfig()
		c.Encryption.Keyring = ringFile
		n := startFullNodeAs(t, fs, c)
		if code := n.create(marker); code != kafka.None {
			t.Fatal(code)
		}
		n.carry(marker, 20)
		if err := sealed.AddKey(fs, ringFile, "second", false); err != nil {
			t.Fatal(err)
		}
		if code := n.create("other"); code != kafka.None { // its files take the second key
			t.Fatal(code)
		}
		n.carry("other", 20)
		if end := n.carry(marker, 5); end != 25 {
			t.Fatalf("end %d", end)
		}
		n.stop()
		if found := filesWith(t, fs, "/data"); len(found) > 0 {
			t.Fatalf("R151: readable in %v", found)
		}
		both, err := sys.ReadFile(fs, ringFile, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if err := sealed.AddKey(fs, "/keys/foreign", "first", true); err != nil {
			t.Fatal(err)
		}
		foreign, err := sys.ReadFile(fs, "/keys/foreign", 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		refusals(t, fs, foreign, both)
		// The keyring of before the second key: what was sealed with the first is served, the rest is refused.
		if err := sys.WriteFileAtomic(fs, ringFile, old); err != nil {
			t.Fatal(err)
		}
		if node, err := Start(t.Context(), Options{Config: c, Machine: systest.Machine(fs, nil, nil), Log: slog.New(slog.DiscardHandler)}); err == nil {
			node.Stop(t.Context())
		} else if !errors.Is(err, sealed.ErrUnknownKey) {
			t.Errorf("the keyring of before: %v", err)
		}
		if err := sys.WriteFileAtomic(fs, ringFile, both); err != nil {
			t.Fatal(err)
		}
		n = startFullNodeAs(t, fs, c)
		defer n.stop()
		if a, b := n.end(marker), n.end("other"); a != 25 || b != 20 {
			t.Fatalf("ends %d and %d", a, b)
		}
	})
}
