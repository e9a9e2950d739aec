package coordinator

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/config"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/replica"
)

// longCommits is 10,000,000 for the line of the groups issue (C055).
var longCommits = flag.Int("longlog.commits", 1_000_000, "commits in the log of BenchmarkLoadOfALongLog")

// longKeys is how many groups committed them.
const longKeys = 100

// fillLog writes commits of longKeys groups to the progress log, perBatch to a batch, as that many clients at once would leave it.
func fillLog(w *world, id kafka.TopicID, commits, perBatch int) *shard {
	w.t.Helper()
	s := w.shardOf("g0")
	bu := record.NewBuilder(record.None)
	for i := range commits {
		k := kmsg.OffsetCommitKey{Version: 1, Group: fmt.Sprintf("g%d", i%longKeys), Topic: "orders"}
		v := kmsg.OffsetCommitValue{Version: 4, Offset: int64(i), CommitTimestamp: w.wall.Now().UnixMilli(), TopicID: id}
		bu.Add(v.CommitTimestamp, k.AppendTo(nil), v.AppendTo(nil), nil)
		if bu.Count() == perBatch || i == commits-1 {
			p := w.host.Host.Append([]replica.AppendItem{{TP: s.tp, Batch: bu.Build(), Within: &s.epoch}}, replica.AcksLeader, time.Minute)
			<-p.Ready()
			w.must(p.Results()[0].Err)
			bu.Reset()
		}
	}
	return s
}

// replayed loads the shard anew.
func replayed(w *world, s *shard) (records int) {
	w.t.Helper()
	n, err := newShard(w.groups, s.tp, s.epoch).replay(group.NewShard(w.groups.coreConfig()))
	w.must(err)
	return n
}

// TestC055_ALongLogBecomesShort: the log of groups is compacted while the node runs, and what is loaded then are the same positions (P33).
func TestC055_ALongLogBecomesShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newLongWorld(t, 64<<10)
		w.start()
		defer func() { w.stop(false) }()
		w.must(w.groups.Create(t.Context()))
		id := w.topic("orders", nil)
		const commits = 20_000
		s := fillLog(w, id, commits, 7)
		if n := replayed(w, s); n != commits {
			t.Fatalf("%d records", n)
		}
		time.Sleep(time.Minute)
		n := replayed(w, s)
		if n > commits/10 {
			t.Fatalf("%d records are left of %d commits of %d keys\n%s", n, commits, longKeys, w.log)
		}
		w.restart(false)
		for g := range longKeys {
			if at := w.mustFetch(fmt.Sprintf("g%d", g), id); at != kafka.Offset(commits-longKeys+g) {
				t.Fatalf("group %d is at %d after %d records", g, at, n)
			}
		}
	})
}

// newLongWorld has one shard, whose segments have this size.
func newLongWorld(t testing.TB, segmentBytes int64) *world {
	w := newIdleWorld(t)
	w.broker["offsets.topic.num.partitions"] = "1"
	w.shape = func(c *config.Topic) { c.SegmentBytes = segmentBytes }
	return w
}

// BenchmarkLoadOfALongLog loads a long log on the real disk before and after the cleaner has been there: -longlog.commits=10000000.
func BenchmarkLoadOfALongLog(b *testing.B) {
	for _, perBatch := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d a batch", perBatch), func(b *testing.B) {
			w := newLongWorld(b, 100<<20)
			w.disk = b.TempDir()
			w.start()
			defer func() { w.stop(false) }()
			w.must(w.groups.Create(b.Context()))
			s := fillLog(w, w.topic("orders", nil), *longCommits, perBatch)
			began := time.Now()
			n := replayed(w, s) // less than all, if the cleaner was there before
			b.ReportMetric(float64(n)/time.Since(began).Seconds()/1e6, "Mrecords/s")
			b.ReportMetric(float64(n)/1e6, "Mrecords-long")
			b.ReportMetric(time.Since(began).Seconds(), "s-long")
			look := time.NewTicker(100 * time.Millisecond)
			defer look.Stop()
			for began = time.Now(); sizeOnDisk(w, s.tp) > 210<<20; { // the active segment, and what came while a pass ran
				if time.Since(began) > 3*time.Minute {
					b.Fatalf("%d bytes are left\n%s", sizeOnDisk(w, s.tp), w.log)
				}
				<-look.C
			}
			began = time.Now()
			replayed(w, s)
			b.ReportMetric(time.Since(began).Seconds(), "s-compacted")
		})
	}
}

// sizeOnDisk is the size of a log's segments.
func sizeOnDisk(w *world, tp kafka.TopicPartition) (n int64) {
	files, _ := filepath.Glob(filepath.Join(w.disk, "topics", tp.String(), "*.log"))
	for _, f := range files {
		if st, err := os.Stat(f); err == nil {
			n += st.Size()
		}
	}
	return n
}
