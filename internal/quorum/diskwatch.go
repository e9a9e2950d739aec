package quorum

import (
	"time"

	"go.etcd.io/raft/v3/raftpb"
)

// A leader answers heartbeats whatever its disk does, and the others may commit without it; but it applies only what is on its own disk, so with a
// disk that hangs or is full it would lead and decide nothing. Then it hands over, if there is somebody to hand over to.

// diskWatch is what the loop knows of the append goroutine's progress.
type diskWatch struct {
	// onDisk counts the appends whose answers are outstanding, movedAt is when the last one came back, or when the first was handed over.
	onDisk  int
	movedAt time.Time
	// stalled says that this was logged.
	stalled bool
}

// handedOver counts an append that will be answered.
func (l *loop) handedOver(m *raftpb.Message) {
	if len(m.GetResponses()) == 0 {
		return
	}
	if l.onDisk == 0 {
		l.movedAt = time.Now()
	}
	l.onDisk++
}

// written counts an answer.
func (l *loop) written(done outcome) {
	if len(done.responses) > 0 {
		l.onDisk--
		l.movedAt, l.stalled = time.Now(), false
	}
}

// watchDisk is called each tick.
func (l *loop) watchDisk() {
	if l.onDisk == 0 || time.Since(l.movedAt) < stallMax || !l.q.Leadership().Leading {
		return
	}
	to := l.successor()
	if to == 0 {
		return
	}
	if !l.stalled {
		l.stalled = true
		l.q.log.Error("the metadata log takes nothing; another controller is to lead", "for", time.Since(l.movedAt).Round(time.Millisecond).String(), "dir", l.disk.dir)
	}
	l.node.TransferLeader(to)
}
