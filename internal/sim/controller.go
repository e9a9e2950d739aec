package sim

import (
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// controller is the metadata quorum and its active controller: an ideal log. Decisions are made on the working Image at once and committed a
// little later, in order; when the leadership is lost, what is not committed may vanish, and answers with it.
type controller struct {
	w         *world
	working   *metadata.Image
	committed *metadata.Image
	pending   []pending
	downUntil time.Duration
	term      int
	lastHeard map[kafka.NodeID]time.Duration
	lastDone  time.Duration // when the newest pending decision will be committed
}

// pending is a decision that is not committed.
type pending struct {
	image *metadata.Image
	reply func()
}

func newController(w *world) *controller {
	return &controller{w: w, working: metadata.Empty(), committed: metadata.Empty(), lastHeard: map[kafka.NodeID]time.Duration{}}
}

// decide decides an event; reply is told when what it tells of is committed. Without an active controller nothing comes of it.
func (c *controller) decide(ev metadata.Event, reply func(any)) {
	w := c.w
	if c.downUntil > w.now {
		return
	}
	if r, ok := ev.(metadata.RegisterBroker); ok {
		r.NextVersion = c.working.Version() + 1
		r.HolderSilent = w.now - c.lastHeard[r.Node]
		ev = r
	}
	d := c.working.Decide(ev)
	if r, ok := d.Reply.(metadata.Registered); ok && r.OK() {
		c.lastHeard[ev.(metadata.RegisterBroker).Node] = w.now
	}
	if len(d.Records) > 0 {
		next, err := c.working.Apply(c.working.Version()+1, d.Records)
		if err != nil {
			w.fail("C080: a decision on %T cannot be applied: %v", ev, err)
		}
		c.working = next
	}
	c.pending = append(c.pending, pending{image: c.working, reply: func() {
		reply(d.Reply)
	}})
	term := c.term
	c.lastDone = max(c.lastDone, w.now+w.between(time.Millisecond, 20*time.Millisecond))
	w.after(c.lastDone-w.now, nil, func() {
		if c.term == term {
			c.commitOne()
		}
	})
}

// commitOne commits the oldest decision.
func (c *controller) commitOne() {
	p := c.pending[0]
	c.pending = c.pending[1:]
	if p.image != c.committed {
		c.w.committed(c.committed, p.image)
		c.committed = p.image
		for _, n := range c.w.nodes {
			c.publishTo(n)
		}
	}
	p.reply()
}

// publishTo sends the committed Image to a node.
func (c *controller) publishTo(n *node) {
	img := c.committed
	c.w.send(c.w.controllerAt(), n.index, n, func() { n.apply(img) })
}

// failOver takes the leadership away. The next controller begins with what was committed.
func (c *controller) failOver() {
	w := c.w
	if c.downUntil > w.now {
		return
	}
	w.rare["controller fail-over"]++
	keep := 0
	if len(c.pending) > 0 {
		keep = w.rng.IntN(len(c.pending) + 1)
	}
	for range keep { // committed by the next leader, but nobody is told
		p := c.pending[0]
		p.reply = func() {}
		c.pending[0] = p
		c.commitOne()
	}
	c.pending, c.working = nil, c.committed
	c.term++
	c.downUntil = w.now + w.between(300*time.Millisecond, 2*time.Second)
	term := c.term
	w.after(c.downUntil-w.now, nil, func() {
		if c.term == term {
			c.takeOver()
		}
	})
}

// takeOver dials every unfenced broker, and finishes what was left.
func (c *controller) takeOver() {
	w := c.w
	for _, n := range w.nodes {
		c.lastHeard[n.id] = w.now
		if !n.up {
			c.refused(n)
		}
	}
	c.decide(metadata.FinishTopics{Now: w.wall()}, func(any) {})
}

// heard notes a heartbeat; known is false when nobody answers.
func (c *controller) heard(id kafka.NodeID, epoch kafka.BrokerEpoch) (fenced, known bool) {
	if c.downUntil > c.w.now {
		return false, false
	}
	b := c.committed.Broker(id)
	if b == nil || b.Epoch != epoch {
		return true, true
	}
	c.lastHeard[id] = c.w.now
	return b.Fenced, true
}

// refused is a dial that found nobody: the process is gone.
func (c *controller) refused(n *node) {
	if !n.up && c.downUntil <= c.w.now {
		c.fence(n.id)
	}
}

// watch fences the silent.
func (c *controller) watch() {
	if c.downUntil > c.w.now {
		return
	}
	for _, n := range c.w.nodes {
		if c.w.now-c.lastHeard[n.id] > sessionTimeout {
			c.fence(n.id)
		}
	}
}

func (c *controller) fence(id kafka.NodeID) {
	if b := c.working.Broker(id); b != nil && !b.Fenced {
		c.w.trace("node %d is fenced", id)
		c.decide(metadata.FenceBroker{Now: c.w.wall(), Node: id, Epoch: b.Epoch}, func(any) {})
	}
}

// form makes the cluster with its topic, once all nodes are there.
func (c *controller) form() {
	w := c.w
	img, err := metadata.Empty().Apply(1, []metadata.Record{metadata.ClusterRecord{ClusterID: "sim", Voters: []metadata.Voter{
		{RaftID: 1, Node: 1, Directory: w.nodes[0].directory, Address: "node-1:1"},
	}}})
	if err != nil {
		w.fail("%v", err)
	}
	c.working, c.committed = img, img
}

// create makes the topic: a partition's policy is its own here, so configs say nothing about it.
func (c *controller) create(done func()) {
	w := c.w
	least := fmt.Sprint(w.o.MinISR)
	t := metadata.NewTopic{ID: w.topic, Name: "t", Partitions: int32(w.o.Partitions), ReplicationFactor: int16(w.o.Factor),
		Configs: map[string]*string{"min.insync.replicas": &least}}
	ev := metadata.CreateTopics{Now: w.wall(), Topics: []metadata.NewTopic{t}, Seed: w.rng.Uint64()}
	c.decide(ev, func(reply any) {
		if r := reply.([]metadata.TopicResult)[0]; !r.OK() {
			w.after(200*time.Millisecond, nil, func() { c.create(done) })
			return
		}
		done()
	})
}

// administer does now and then what operators do.
func (c *controller) administer() {
	w := c.w
	p := int32(w.rng.IntN(w.o.Partitions))
	name := metadata.NamedPartition{Topic: "t", Partition: p}
	switch {
	case w.chance(40):
		c.decide(metadata.BalanceLeaders{Max: 10}, func(any) {})
	case w.o.Moves && w.chance(50):
		var to []kafka.NodeID
		for _, i := range w.rng.Perm(len(w.nodes))[:w.o.Factor] {
			to = append(to, w.nodes[i].id)
		}
		c.decide(metadata.AlterAssignments{Partitions: []metadata.NewAssignment{{NamedPartition: name, Replicas: to, Cancel: w.chance(20)}}}, func(reply any) {
			if reply.([]metadata.AssignmentResult)[0].OK() {
				w.rare["move"]++
			}
		})
	default:
		c.decide(metadata.ElectLeaders{Partitions: []metadata.NamedPartition{name}}, func(any) {})
	}
}
