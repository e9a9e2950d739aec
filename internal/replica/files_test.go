package replica

import (
	"context"
	"log/slog"
	"strings"
	"syscall"
	"testing"

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
