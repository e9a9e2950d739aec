package replica

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// TestI4_WantOfDescriptorsIsNoDamage: a start that cannot open its logs for want of file descriptors fails. To register them as damaged
// would take every replica out of its ISR for a machine's setting.
func TestI4_WantOfDescriptorsIsNoDamage(t *testing.T) {
	w, fs := newWorld(t)
	w.acked(w.topic("orders", 2), batch(1))
	w.stop(false)
	fs.Hook(func(op systest.Op) error {
		if op.Kind == systest.OpOpen && strings.HasSuffix(op.Name, ".log") {
			return syscall.EMFILE
		}
		return nil
	})
	dir, err := storage.OpenDir(storage.DirOptions{Machine: w.machine, Path: w.path})
	w.must(err)
	h, err := NewHost(Config{
		Dir: dir, Node: me, Machine: w.machine, Log: slog.New(slog.DiscardHandler), Metrics: metrics.New().Broker,
		TopicConfig: w.topicConfig, Purged: w.notePurged,
	})
	w.must(err)
	if found, err := h.Recover(context.Background()); !sys.IsTooManyFiles(err) || len(found.Damaged) != 0 {
		t.Errorf("Recover without descriptors = %v, %v", found, err)
	}
	fs.Hook(nil)
	w.must(dir.Close(storage.CloseOptions{}))
	w.start()
	w.register()
	if len(w.found.Damaged) != 0 {
		t.Errorf("damaged at the next start: %v", w.found.Damaged)
	}
}

// TestC090_FollowersOpenBoundedFiles: a follower of many more partitions than it may have files open, on a slow disk, stays below its bound
// whatever the leader sends at once, and gets everything.
func TestC090_FollowersOpenBoundedFiles(t *testing.T) {
	const partitions, files = 100, 16
	for _, flush := range []string{"synced", "replicated"} {
		t.Run(flush, func(t *testing.T) {
			inClusterBubble(t, 2, func(t *testing.T, c *cluster) {
				follower := c.nodes[2]
				follower.stop()
				follower.files = files
				follower.start()
				tp := c.topic("orders", partitions, "strandline.flush="+flush)
				follower.fs.SetLatency(slowSyncs(50 * time.Millisecond))
				var most atomic.Int64
				follower.fs.Hook(func(op systest.Op) error {
					if op.Kind == systest.OpWrite {
						most.Store(max(most.Load(), int64(follower.fs.OpenFiles(".log"))))
					}
					return nil
				})
				items := make([]AppendItem, partitions)
				for i := range items {
					items[i] = AppendItem{TP: kafka.TopicPartition{Topic: tp.Topic, Partition: int32(i)}, Batch: oneBatch()}
				}
				for _, r := range c.nodes[1].host.Append(items, AcksLeader, time.Minute).Results() {
					c.must(r.Err)
				}
				for _, it := range items {
					c.alike(it.TP)
				}
				if n := most.Load(); n > files || n < files/2 {
					t.Errorf("%d segment files were open at once, of at most %d", n, files)
				}
			})
		})
	}
}

// TestC090_ADiskThatHangsIsWaitedForOnce: a publish to many partitions, on a node that has too many files open and a disk that closes none,
// is refused after one wait, not after one for each partition.
func TestC090_ADiskThatHangsIsWaitedForOnce(t *testing.T) {
	const partitions, files = 100, 16
	inClusterBubble(t, 2, func(t *testing.T, c *cluster) {
		for _, n := range c.nodes {
			n.stop()
			n.files = files
			n.start()
		}
		tp := c.topic("orders", partitions)
		leader := c.nodes[1]
		leader.fs.SetLatency(slowSyncs(time.Hour))
		items := make([]AppendItem, partitions)
		for i := range items {
			items[i] = AppendItem{TP: kafka.TopicPartition{Topic: tp.Topic, Partition: int32(i)}, Batch: oneBatch()}
		}
		began := time.Now()
		refused := 0
		for _, r := range leader.host.Append(items, AcksLeader, time.Minute).Results() {
			if errors.Is(r.Err, storage.ErrTooManyFiles) {
				refused++
			} else {
				c.must(r.Err)
			}
		}
		if took := time.Since(began); refused < partitions-files || took > 10*time.Second {
			t.Errorf("%d of %d partitions refused, after %v", refused, partitions, took)
		}
		leader.fs.SetLatency(nil)
	})
}

// slowSyncs makes syncs take so long.
func slowSyncs(d time.Duration) func(systest.Op) time.Duration {
	return func(op systest.Op) time.Duration {
		if op.Kind == systest.OpSync || op.Kind == systest.OpSyncAll {
			return d
		}
		return 0
	}
}
