package quorum

import (
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/sys/systest"
)

// A leader whose disk hangs, or has no room, lets another one lead; when the disk is back it follows.
func TestALeaderWhoseDiskTakesNothingHandsOver(t *testing.T) {
	for name, stall := range map[string]func(fs *systest.FS) (heal func()){
		"hangs": func(fs *systest.FS) func() {
			healed := make(chan struct{})
			fs.Hook(func(op systest.Op) error {
				if op.Kind == systest.OpSync {
					<-healed
				}
				return nil
			})
			return func() { fs.Hook(nil); close(healed) }
		},
		"full": func(fs *systest.FS) func() {
			fs.SetFree(0)
			return func() { fs.SetFree(-1) }
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newTestCluster(t, 3)
			c.start(1, 2, 3)
			c.agree(c.fill(3))
			old := c.leader(time.Second)
			heal := stall(old.fs)
			term := old.q.Leadership().Term
			if err := old.q.Propose(term, old.q.LogEnd(), nil); err != nil {
				t.Fatal(err)
			}
			c.eventually(name+": another node leads", 5*time.Second, func() bool {
				for id, m := range c.nodes {
					if l := m.q.Leadership(); l.Leading && id != old.id {
						return true
					}
				}
				return false
			})
			delete(c.nodes, old.id)
			last := c.fill(5)
			c.nodes[old.id] = old
			heal()
			c.agree(last)
			c.end()
		})
	}
}
