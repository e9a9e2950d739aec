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

// A damaged log that is set aside comes back with its topic, as every other one: it is not replaced by an empty log.
func TestI10_DamagedLogComesBackFromQuarantine(t *testing.T) {
	w, fs := newWorld(t)
	tp := w.topic("orders", 1)
	w.acked(tp, batch(3))
	w.stop(true)
	name := filepath.Join(w.path, "topics", tp.String(), "00000000000000000000.log")
	if err := fs.Cut(name, 20); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.register()
	epoch := w.host.mu.brokerEpoch
	without, err := metadata.Empty().Apply(w.version+1, []metadata.Record{metadata.BrokerRecord{Node: me, Epoch: epoch}})
	w.must(err)
	w.must(w.host.Reconcile(without))
	q, err := w.dir.Quarantined()
	w.must(err)
	if len(q) != 1 {
		t.Fatal("not set aside")
	}
	w.version += 2
	img, err := w.img.Apply(w.version, nil)
	w.must(err)
	w.img = img
	_ = w.host.Reconcile(w.img) // it is still damaged, which is an error of its own
	q, err = w.dir.Quarantined()
	w.must(err)
	if len(q) != 0 {
		t.Fatalf("the topic is back, its data is still in quarantine: %+v", w.status(tp))
	}
}
