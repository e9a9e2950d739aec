package sim

import (
	"fmt"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

const (
	heartbeatEvery = 200 * time.Millisecond
	sessionTimeout = 2 * time.Second
	// answerMax is how long a node waits for an answer before it asks again.
	answerMax = 1500 * time.Millisecond
)

// node is a data directory and the processes that run on it, one after the other.
type node struct {
	w     *world
	id    kafka.NodeID
	index int

	up          bool
	life        int // counts processes
	frozenUntil time.Duration
	slowUntil   time.Duration

	directory   kafka.ID
	startNumber uint64
	boot        int
	// bootMarked is the boot in which the last judged registration was made; clean says that the last process stopped by request.
	bootMarked int
	clean      bool

	incarnation kafka.ID
	epoch       kafka.BrokerEpoch // of this process's registration, 0 before
	attempt     int               // of registering
	ready       bool
	leaving     bool
	sequence    uint64
	image       *metadata.Image
	reps        []*replica
	// lossy says for each partition that bytes this node reported may be gone, and no committed registration has judged it.
	lossy []bool
	// foundDamaged are replicas to be reported at the next registration.
	foundDamaged []bool
}

func (n *node) String() string { return fmt.Sprintf("node %d", n.id) }

func (n *node) tp(p int) kafka.TopicPartition {
	return kafka.TopicPartition{Topic: n.w.topic, Partition: int32(p)}
}

func (w *world) newID() kafka.ID {
	var id kafka.ID
	for i := range id {
		id[i] = byte(w.rng.IntN(256))
	}
	id[0] |= 1 // never zero
	return id
}

// start begins a process on the directory.
func (n *node) start() {
	w := n.w
	if n.up {
		return
	}
	n.up, n.ready, n.leaving = true, false, false
	n.life++
	n.startNumber++
	n.epoch, n.frozenUntil, n.slowUntil, n.sequence = 0, 0, 0, 0
	n.incarnation = w.newID()
	n.image = metadata.Empty()
	w.trace("%v starts, number %d", n, n.startNumber)
	for p, r := range n.reps {
		r.recover()
		n.reportDamage(p)
	}
	w.after(w.between(5*time.Millisecond, 300*time.Millisecond), n, n.register)
	w.every(heartbeatEvery, n, n.heartbeat)
	w.every(w.o.Lag/10, n, n.tick)
	w.every(2*time.Second, n, n.housekeep)
	n.catchUp()
}

// catchUp brings the newest committed Image, as an observer fetches it.
func (n *node) catchUp() {
	w := n.w
	w.send(n.index, w.controllerAt(), nil, func() { w.ctl.publishTo(n) })
	w.after(w.between(500*time.Millisecond, 1500*time.Millisecond), n, n.catchUp)
}

// crash ends the process without a word; with power the machine goes with it.
func (w *world) crash(n *node, power bool) {
	if n.up && n.boot != n.bootMarked && !power { // killed before its first registration after a clean stop and a reboot: as good as a power cut
		if !w.allSynced() && !w.mayLose(n) {
			return
		}
		power = true
	}
	if power {
		n.boot++
		w.rare["power cut"]++
	}
	wasClean := !n.up && n.clean
	n.incarnation = kafka.ID{} // no process
	if n.up {
		n.up, n.clean = false, false
		w.trace("%v is killed (power %v)", n, power)
		if w.chance(80) {
			w.after(w.between(time.Millisecond, 50*time.Millisecond), nil, func() { w.ctl.refused(n) })
		}
	}
	for p, r := range n.reps {
		r.die()
		if power && !wasClean {
			r.loseUnsynced()
			if !w.o.Synced[p] && r.present {
				w.loses(n, p)
			}
		}
	}
	w.after(w.between(50*time.Millisecond, 12*time.Second), nil, n.start)
}

// loses notes that a node may have lost bytes of a partition that it had reported.
func (w *world) loses(n *node, p int) {
	w.lossy, n.lossy[p] = n, true
}

// wipe empties the disk of a node that is down.
func (n *node) wipe() {
	w := n.w
	w.rare["wiped disk"]++
	n.directory, n.startNumber, n.clean = w.newID(), 0, false
	for p, r := range n.reps {
		if r.present {
			w.loses(n, p)
		}
		r.forget()
	}
}

// findDamage takes a log out of service, reports it and begins it anew (I11).
func (n *node) findDamage() {
	w := n.w
	p := w.rng.IntN(len(n.reps))
	r := n.reps[p]
	if !r.present || r.offline {
		return
	}
	w.rare["damage"]++
	w.trace("%v finds partition %d damaged", n, p)
	w.loses(n, p)
	r.die()
	r.offline = true
	r.disk.reset(0)
	n.foundDamaged[p] = true
	n.reportDamage(p)
}

func (n *node) reportDamage(p int) {
	if !n.foundDamaged[p] {
		return
	}
	if n.epoch == 0 {
		n.w.after(answerMax, n, func() { n.reportDamage(p) })
		return
	}
	done := false
	known := metadata.DamagedReplica{TP: n.tp(p), LeaderEpoch: n.w.state(n.image, p).LeaderEpoch}
	n.submit(metadata.ReportDamage{Node: n.id, Epoch: n.epoch, Damaged: []metadata.DamagedReplica{known}}, func(reply any) {
		if r := reply.(metadata.DamageNoted); r.OK() && len(r.Stale) == 0 {
			done = true
			n.judged(p)
		}
	})
	n.w.after(answerMax, n, func() {
		if !done {
			n.reportDamage(p)
		}
	})
}

// judged says that the controller has taken in that this replica is damaged. It may begin anew once this node sees the same: by an older
// Image it might lead in its old epoch, with nothing.
func (n *node) judged(p int) {
	r, s := n.reps[p], n.w.state(n.image, p)
	switch {
	case !n.foundDamaged[p]:
	case s.Leader == n.id || slices.Contains(s.ISR, n.id) || slices.Contains(s.ELR, n.id):
		n.w.after(10*time.Millisecond, n, func() { n.judged(p) })
	default:
		n.foundDamaged[p] = false
		n.w.trace("%v: the controller knows that partition %d is damaged; it begins anew", n, p)
		n.w.settleLosses(n.w.ctl.committed)
		r.offline, r.state.PartitionEpoch = false, -1
		r.sync()
		n.assignAll()
	}
}

// leave stops the process by request: leaderships are handed over, everything is synced, the clean marker is written.
func (n *node) leave() {
	w := n.w
	if !n.up || !n.ready || n.leaving {
		return
	}
	n.leaving = true
	w.trace("%v is asked to stop", n)
	gone := func() {
		w.trace("%v has stopped", n)
		n.up, n.clean = false, true
		for _, r := range n.reps {
			r.die()
			r.disk.synced, r.disk.hw = r.disk.end(), max(r.disk.hw, min(r.hw, r.disk.end()))
		}
		if w.chance(30) && w.mayLose(n) {
			n.boot++
		}
		w.after(w.between(100*time.Millisecond, 5*time.Second), nil, n.start)
	}
	life := n.life
	w.after(time.Second, nil, func() {
		if n.up && n.life == life {
			gone()
		}
	})
	n.submit(metadata.FenceBroker{Node: n.id, Epoch: n.epoch, Stopping: true, Now: w.wall()}, func(any) {})
}

// register tells the controller who has started (I3, I4), and goes on until it is ready.
func (n *node) register() {
	w := n.w
	if n.leaving {
		return
	}
	n.attempt++ // whatever an earlier attempt still brings does not count
	attempt := n.attempt
	ev := metadata.RegisterBroker{
		Now: w.wall(), Principal: kafka.Principal{Type: "Node", Name: n.id.String()}, Node: n.id, Incarnation: n.incarnation,
		Directory: n.directory, StartNumber: n.startNumber, BootID: fmt.Sprint(n.boot), Roles: []string{"broker"},
		ClusterAddress: fmt.Sprintf("node-%d:1", n.id),
	}
	for p, r := range n.reps {
		switch {
		case n.foundDamaged[p]:
			ev.Damaged = append(ev.Damaged, n.tp(p))
		case r.present && !w.o.Synced[p] && !n.clean && n.boot != n.bootMarked:
			ev.Unclean = append(ev.Unclean, n.tp(p))
		}
	}
	if len(ev.Unclean) > 0 {
		w.rare["unclean restart"]++
	}
	answered := false
	n.submit(ev, func(reply any) {
		if n.attempt != attempt {
			return
		}
		answered = true
		r := reply.(metadata.Registered)
		if !r.OK() {
			w.after(time.Second, n, func() { n.again(attempt) })
			return
		}
		n.epoch, n.bootMarked, n.clean = r.Epoch, n.boot, false
		for p := range n.reps {
			if len(ev.Damaged) > 0 {
				n.judged(p)
			}
		}
		n.assignAll()
		n.becomeReady(attempt)
	})
	w.after(answerMax, n, func() {
		if !answered {
			n.again(attempt)
		}
	})
}

// again registers again, unless another attempt has begun.
func (n *node) again(attempt int) {
	if n.attempt == attempt {
		n.register()
	}
}

// becomeReady asks to be unfenced once this node has seen its registration.
func (n *node) becomeReady(attempt int) {
	w := n.w
	if n.attempt != attempt {
		return
	}
	if b := n.image.Broker(n.id); b != nil && b.Epoch > n.epoch { // an attempt whose answer was lost came later
		n.register()
		return
	}
	if !n.registered() {
		w.after(20*time.Millisecond, n, func() { n.becomeReady(attempt) })
		return
	}
	answered := false
	n.submit(metadata.BrokerReady{Now: w.wall(), Node: n.id, Epoch: n.epoch}, func(reply any) {
		if n.attempt != attempt {
			return
		}
		answered = true
		if n.ready = reply.(metadata.BrokerChanged).OK(); !n.ready {
			n.register()
		}
	})
	w.after(answerMax, n, func() {
		if !answered {
			n.becomeReady(attempt)
		}
	})
}

// registered says that this node's Image holds the registration of this process.
func (n *node) registered() bool {
	b := n.image.Broker(n.id)
	return b != nil && n.epoch != 0 && b.Epoch == n.epoch
}

// heartbeat keeps the session; a node that hears that it is fenced registers again.
func (n *node) heartbeat() {
	w := n.w
	if !n.ready {
		return
	}
	epoch := n.epoch
	w.send(n.index, w.controllerAt(), nil, func() {
		fenced, known := w.ctl.heard(n.id, epoch)
		if !known {
			return
		}
		w.send(w.controllerAt(), n.index, n, func() {
			if fenced && n.ready && n.epoch == epoch && !n.leaving {
				n.ready = false
				n.register()
			}
		})
	})
}

// submit sends an event to the controller. then is told the reply when it is committed, if the answer comes through to this process.
func (n *node) submit(ev metadata.Event, then func(reply any)) {
	w, life := n.w, n.life
	w.send(n.index, w.controllerAt(), nil, func() {
		w.ctl.decide(ev, func(reply any) {
			w.send(w.controllerAt(), n.index, n, func() {
				if n.life == life { // the connection died with the process
					then(reply)
				}
			})
		})
	})
}

// apply takes in an Image. An older one never replaces a newer one (I13).
func (n *node) apply(img *metadata.Image) {
	if img.Version() <= n.image.Version() {
		return
	}
	n.image = img
	n.assignAll()
}

func (n *node) assignAll() {
	t := n.image.TopicByID(n.w.topic)
	if t == nil {
		return
	}
	for p, s := range t.Partitions {
		n.reps[p].assign(s)
	}
}

func (n *node) tick() {
	for _, r := range n.reps {
		r.tick()
	}
}

// housekeep writes the sync-point file and has dropped replicas confirmed.
func (n *node) housekeep() {
	for p, r := range n.reps {
		r.disk.hw = max(r.disk.start, min(r.hwNow(), r.disk.end()))
		if !n.w.o.Synced[p] {
			r.disk.synced = r.disk.end() // the kernel writes back what nobody waits for
		}
		if n.image.PurgePending(n.id, n.tp(p)) && !r.present {
			n.submit(metadata.ReplicasPurged{Node: n.id, Partitions: []kafka.TopicPartition{n.tp(p)}}, func(any) {})
		}
	}
}
