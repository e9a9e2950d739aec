package interop

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

var diskFlag = flag.Bool("interop.disk", false, "give the node of TestP43_DiskLimit a file system of its own size (a tmpfs in a mount namespace; needs root)")

const (
	// diskBytes is the limit of the node, or the size of its file system.
	diskBytes = 48 << 20
	// refusedMax is how long a client may take to say that a record was refused. What a loaded machine takes to start a program does not count.
	refusedMax = time.Second
)

// startLimited starts a node with that much room.
func startLimited(t *testing.T) *broker {
	t.Helper()
	if !*diskFlag {
		t.Setenv("STRANDLINE_DISK_LIMIT_BYTES", strconv.Itoa(diskBytes))
		return startBroker(t)
	}
	// The mount is seen by this process and its children only, and goes with them.
	dir, script := t.TempDir(), filepath.Join(t.TempDir(), "strandline")
	text := fmt.Sprintf("#!/bin/sh\nexec unshare -m sh -c 'mount -t tmpfs -o size=%d tmpfs %s && exec \"$0\" \"$@\"' %s \"$@\"\n", diskBytes, dir, os.Getenv("STRANDLINE_BIN"))
	if err := os.WriteFile(script, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STRANDLINE_BIN", script)
	return startBroker(t, "--data-dir", filepath.Join(dir, "data"))
}

// refused publishes one record with a client that does not retry, and returns what it says and after how long.
type refused func(t *testing.T, b *broker, topic string) (says string, took time.Duration)

// patient publishes one record with a client that retries as it does by default, or as its documentation says; the error is nil when it was stored.
type patient func(ctx context.Context, b *broker, topic string) error

// TestP43_DiskLimit: a node whose room is used up refuses records of four clients by name, in under a second, while it serves reads and commits;
// the same clients, left to retry, store their records when room is made, without a restart.
func TestP43_DiskLimit(t *testing.T) {
	b := startLimited(t)
	client, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.DefaultProduceTopic("full"), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.RecordRetries(0), kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	admin := kadm.NewClient(client)
	if _, err := admin.CreateTopic(ctx, 1, 1, map[string]*string{"segment.bytes": kadm.StringPtr("4194304")}, "full"); err != nil {
		t.Fatal(err)
	}
	stored := 0
	for {
		err := client.ProduceSync(ctx, &kgo.Record{Value: make([]byte, 256<<10)}).FirstErr()
		if errors.Is(err, kerr.KafkaStorageError) {
			break
		}
		if err != nil {
			t.Fatalf("after %d records: %v", stored, err)
		}
		stored++
	}
	if stored < diskBytes/2/(256<<10) {
		t.Fatalf("refused after %d records", stored)
	}
	for name, publish := range map[string]refused{"franz-go": franzRefused, "sarama": saramaRefused, "kcat": kcatRefused, "java": javaRefused} {
		says, took := publish(t, b, "full")
		t.Logf("%s: %q after %v", name, says, took)
		if took > refusedMax {
			t.Errorf("%s: %v until it said %q", name, took, says)
		}
	}
	waiting := map[string]chan error{}
	for name, publish := range map[string]patient{"franz-go": franzPatient, "sarama": saramaPatient, "kcat": kcatPatient, "java": javaPatient} {
		done := make(chan error, 1)
		waiting[name] = done
		go func() { done <- publish(ctx, b, "full") }()
	}
	readAndCommit(t, b, stored)
	for name, done := range waiting {
		select {
		case err := <-done:
			t.Errorf("%s did not wait: %v", name, err)
		default:
		}
	}
	ends, err := admin.ListEndOffsets(ctx, "full")
	if err != nil {
		t.Fatal(err)
	}
	if end, ok := ends.Lookup("full", 0); !ok || end.Offset != int64(stored) {
		t.Errorf("the log ends at %d, %d were acknowledged", end.Offset, stored)
	}
	var to kadm.Offsets
	to.Add(kadm.Offset{Topic: "full", Partition: 0, At: int64(stored)})
	if _, err := admin.DeleteRecords(ctx, to); err != nil {
		t.Fatal(err)
	}
	for name, done := range waiting {
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// readAndCommit reads everything in a group and commits it.
func readAndCommit(t *testing.T, b *broker, records int) {
	t.Helper()
	reader, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("full"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	ctx := deadline(t)
	for read := 0; read < records; {
		f := reader.PollFetches(ctx)
		if err := f.Err(); err != nil {
			t.Fatalf("after %d records: %v", read, err)
		}
		read += f.NumRecords()
	}
	if err := reader.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func franzRefused(t *testing.T, b *broker, topic string) (string, time.Duration) {
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addr), kgo.RecordRetries(0), kgo.DisableIdempotentWrite(), kgo.RequiredAcks(kgo.LeaderAck()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	began := time.Now()
	err = c.ProduceSync(deadline(t), &kgo.Record{Topic: topic, Value: make([]byte, 100)}).FirstErr()
	took := time.Since(began)
	if !errors.Is(err, kerr.KafkaStorageError) {
		t.Errorf("franz-go: %v", err)
	}
	return fmt.Sprint(err), took
}

func franzPatient(ctx context.Context, b *broker, topic string) error {
	c, err := kgo.NewClient(kgo.SeedBrokers(b.addr))
	if err != nil {
		return err
	}
	defer c.Close()
	return c.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: make([]byte, 100)}).FirstErr()
}

func saramaSend(b *broker, topic string, retries int) (time.Duration, error) {
	c := sarama.NewConfig()
	c.Producer.Return.Successes, c.Producer.Retry.Max = true, retries
	p, err := sarama.NewSyncProducer([]string{b.addr}, c)
	if err != nil {
		return 0, err
	}
	defer func() { _ = p.Close() }()
	began := time.Now()
	_, _, err = p.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.ByteEncoder(make([]byte, 100))})
	return time.Since(began), err
}

// saramaRefused retries three times, as by default.
func saramaRefused(t *testing.T, b *broker, topic string) (string, time.Duration) {
	took, err := saramaSend(b, topic, 3)
	if !errors.Is(err, sarama.ErrKafkaStorageError) {
		t.Errorf("sarama: %v", err)
	}
	return fmt.Sprint(err), took
}

func saramaPatient(_ context.Context, b *broker, topic string) error {
	_, err := saramaSend(b, topic, 1000)
	return err
}

func kcatSend(ctx context.Context, b *broker, topic string, settings ...string) (string, error) {
	c := exec.CommandContext(ctx, "kcat", append([]string{"-P", "-b", b.addr, "-t", topic, "-p", "0"}, settings...)...)
	c.Stdin = strings.NewReader(strings.Repeat("x", 100) + "\n")
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// kcatRefused is measured with the start of the program.
func kcatRefused(t *testing.T, b *broker, topic string) (string, time.Duration) {
	began := time.Now()
	says, err := kcatSend(deadline(t), b, topic, "-X", "message.send.max.retries=0")
	took := time.Since(began)
	if err == nil || !strings.Contains(says, "Disk error when trying to access log file on disk") {
		t.Errorf("kcat: %v %q", err, says)
	}
	return says, took
}

func kcatPatient(ctx context.Context, b *broker, topic string) error {
	says, err := kcatSend(ctx, b, topic)
	if err != nil {
		return fmt.Errorf("%w: %s", err, says)
	}
	return nil
}

// javaSend returns the last line that the program prints.
func javaSend(ctx context.Context, b *broker, home, topic, retries string) (string, error) {
	c := exec.CommandContext(ctx, "java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp",
		filepath.Join(home, "classes")+":"+filepath.Join(home, "kafka-clients-4.4.0")+"/*", "Full", b.addr, topic, retries)
	out, err := c.Output()
	last := ""
	for s := bufio.NewScanner(strings.NewReader(string(out))); s.Scan(); {
		last = s.Text()
	}
	return last, err
}

// javaHome is where its classes and the client's are.
func javaHome() string { return filepath.Join(os.Getenv("STRANDLINE_INTEROP_CACHE"), "java") }

func javaRefused(t *testing.T, b *broker, topic string) (string, time.Duration) {
	says, err := javaSend(deadline(t), b, javaHome(), topic, "0")
	ms, rest, _ := strings.Cut(says, " ")
	took, bad := strconv.Atoi(ms)
	if err != nil || bad != nil || !strings.HasPrefix(rest, "KafkaStorageException ") || !strings.Contains(rest, "the disk limit is reached: node 1 has ") {
		t.Errorf("java: %v %q", err, says)
	}
	return rest, time.Duration(took) * time.Millisecond
}

func javaPatient(ctx context.Context, b *broker, topic string) error {
	says, err := javaSend(ctx, b, javaHome(), topic, "all")
	if err == nil && !strings.HasPrefix(says, "offset ") {
		err = errors.New(says)
	}
	return err
}
