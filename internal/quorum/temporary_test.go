package quorum

import (
	"strings"
	"testing"
	"testing/synctest"

	"strandline.dev/internal/sys/systest"
)

// Snapshots that find no room, or that a crash interrupts, leave no temporary files that pile up (I14).
func TestI14_TemporarySnapshotsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := systest.NewFS(1)
		m := newModel()
		n := m.start(t, fs, testOptions{every: 5})
		full := true
		fs.Hook(func(op systest.Op) error {
			if full && op.Kind == systest.OpSync && strings.HasSuffix(op.Name, ".snap.tmp") {
				return systest.ErrNoSpace
			}
			return nil
		})
		for range 200 {
			if !m.commit(n) {
				t.Fatal("not committed")
			}
			synctest.Wait()
		}
		full = false
		for range 50 {
			m.commit(n)
			synctest.Wait()
		}
		fs = n.crash(systest.KillProcess)
		n2, err := openTestNode(t, fs, testOptions{every: 5})
		if err != nil {
			t.Fatal(err)
		}
		n2.run()
		n2.lead()
		left := 0
		for name := range fs.Files() {
			if strings.HasSuffix(name, ".snap.tmp") {
				left++
			}
		}
		_ = n2.close()
		if left > 1 {
			t.Fatalf("%d temporary snapshot files are left, also after a restart with room", left)
		}
	})
}
