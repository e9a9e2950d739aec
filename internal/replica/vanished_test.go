package replica

import (
	"path/filepath"
	"slices"
	"testing"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/sys"
)

// A partition whose directory is gone is named at the registration, and stays offline at every start: it never comes back empty.
func TestI10_VanishedDirectoryIsDamageAndNoNewLog(t *testing.T) {
	w, fs := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, batch(3))
	w.stop(true)
	if err := sys.RemoveAll(fs, filepath.Join(w.path, "topics", tp.String())); err != nil {
		t.Fatal(err)
	}
	w.start()
	if !slices.Contains(w.found.Damaged, tp) {
		t.Errorf("first start: the registration does not name %v: %+v", tp, w.found)
	}
	w.host.SetBrokerEpoch(kafka.BrokerEpoch(w.version + 1))
	w.apply(metadata.BrokerRecord{Node: me, Epoch: kafka.BrokerEpoch(w.version + 1), StartNumber: w.dir.StartNumber(), BootID: w.dir.BootID()})
	if s := w.status(tp); s.Role == Leading {
		t.Errorf("first start: leads: %+v", s)
	}
	w.stop(false)
	w.start()
	w.register()
	if s := w.status(tp); s.Role == Leading {
		t.Errorf("second start: leads again, empty: %+v; a publish gets %+v", s, w.acked(tp, batch(1)))
	}
}
