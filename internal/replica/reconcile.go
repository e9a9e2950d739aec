package replica

import (
	"fmt"
	"maps"
	"slices"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/storage"
)

// reconciled is what the last Reconcile has seen. Only Recover and Reconcile touch it.
type reconciled struct {
	// seen are the topics that are fully applied. Topics of one Image are shared with the next where nothing changed, so
	// the same pointer means nothing to do: a hint only, the Image is the truth.
	seen map[kafka.TopicID]*metadata.Topic
	// registered, defaults and own are what every topic depends on besides itself.
	registered    bool
	defaults, own map[string]string
	// purges is the last Image whose purges were looked at.
	purges *metadata.Image
	// quarantined are the partitions in quarantine, unmoved those that could not be moved there yet and are tried again.
	quarantined, unmoved map[kafka.TopicPartition]struct{}
}

func newReconciled() reconciled {
	return reconciled{
		seen:        map[kafka.TopicID]*metadata.Topic{},
		quarantined: map[kafka.TopicPartition]struct{}{},
		unmoved:     map[kafka.TopicPartition]struct{}{},
	}
}

// Reconcile brings the partitions of this node to what the Image says: it starts, stops and re-leads them, applies settings,
// hands purged ones to the trash, and sets aside what the Image does not name. It is idempotent, and an Image older than the
// last one is ignored (I13). After an error everything else has been done, and the caller tries again after a pause; a
// partition that could not be opened is Offline until then.
func (h *Host) Reconcile(img *metadata.Image) error {
	h.mu.RLock()
	epoch, applied, stopped := h.mu.brokerEpoch, h.mu.applied, h.mu.stopped
	h.mu.RUnlock()
	if stopped {
		return ErrStopped
	}
	if img.Version() < applied {
		return nil
	}
	b := img.Broker(h.env.node)
	ps := pass{h: h, img: img, registered: b != nil && epoch != unregistered && b.Epoch == epoch}
	h.repl.know(img)
	ps.full = h.rec.adopt(img, h.env.node, ps.registered)
	ps.plan()
	ps.openMissing()
	ps.assign()
	ps.purge()
	ps.quarantine()
	if ps.replicated {
		h.env.touched.Store(true)
		wake(h.pointsDue)
	}
	h.publish(img.Version())
	return first(ps.errs)
}

// adopt notes what every topic depends on and reports whether it has changed; then all topics are looked at again.
func (r *reconciled) adopt(img *metadata.Image, node kafka.NodeID, registered bool) (changed bool) {
	defaults, own := img.BrokerConfigs(kafka.NoNode), img.BrokerConfigs(node)
	if r.registered == registered && maps.Equal(r.defaults, defaults) && maps.Equal(r.own, own) {
		return false
	}
	r.registered, r.defaults, r.own = registered, defaults, own
	clear(r.seen)
	return true
}

// pass is one run of Reconcile.
type pass struct {
	h          *Host
	img        *metadata.Image
	registered bool
	// full: every partition is looked at, not only those of topics that changed.
	full bool
	// replicated: a log begins to count under the policy `replicated`.
	replicated bool
	topics     []topicWork
	// released are partitions that may have to go.
	released []kafka.TopicPartition
	errs     []error
}

// topicWork is a topic that is to be applied.
type topicWork struct {
	topic    *metadata.Topic
	config   config.Topic
	settings logSettings
	failed   bool
}

// plan finds the topics that are new or changed, and the partitions of those that changed or went.
func (ps *pass) plan() {
	current := make(map[kafka.TopicID]struct{}, len(ps.h.rec.seen))
	look := func(t *metadata.Topic) {
		current[t.ID] = struct{}{}
		before := ps.h.rec.seen[t.ID]
		if before == t {
			return
		}
		c := ps.h.topicConfig(t)
		settings := settingsOf(c, ps.h.expiry)
		settings.essential = t.Essential()
		ps.topics = append(ps.topics, topicWork{topic: t, config: c, settings: settings})
		if before != nil {
			ps.release(before)
		}
	}
	for t := range ps.img.Topics() {
		look(t)
	}
	for t := range ps.img.Trash() {
		look(t)
	}
	for id, t := range ps.h.rec.seen {
		if _, ok := current[id]; !ok {
			ps.release(t)
			delete(ps.h.rec.seen, id)
		}
	}
}

func (ps *pass) release(t *metadata.Topic) {
	for i := range t.Partitions {
		ps.released = append(ps.released, kafka.TopicPartition{Topic: t.ID, Partition: int32(i)})
	}
}

// openMissing opens the logs of partitions that this node is to hold and does not.
func (ps *pass) openMissing() {
	type opening struct {
		tp   kafka.TopicPartition
		work *topicWork
	}
	var missing []opening
	for i := range ps.topics {
		w := &ps.topics[i]
		for n := range w.topic.Partitions {
			tp := kafka.TopicPartition{Topic: w.topic.ID, Partition: int32(n)}
			if !slices.Contains(w.topic.Partitions[n].Replicas, ps.h.env.node) {
				continue
			}
			if p := ps.h.partition(tp); p == nil || p.unopened() {
				missing = append(missing, opening{tp, w})
			}
		}
	}
	opened := make([]*partition, len(missing))
	errs := make([]error, len(missing))
	parallel(len(missing), func(i int) {
		opened[i], errs[i] = ps.h.provide(missing[i].tp, missing[i].work.settings)
	})
	ps.h.mu.Lock()
	defer ps.h.mu.Unlock()
	for i, p := range opened {
		ps.h.mu.partitions[p.tp] = p
		delete(ps.h.rec.quarantined, p.tp)
		if errs[i] != nil {
			missing[i].work.failed = true
			ps.errs = append(ps.errs, errs[i])
		}
	}
}

// provide opens the log of a partition, from quarantine if it is there (I10), or creates it.
func (h *Host) provide(tp kafka.TopicPartition, s logSettings) (*partition, error) {
	if _, ok := h.rec.quarantined[tp]; ok { // only read here: provide runs in parallel
		if err := h.dir.RestoreQuarantined(tp); err != nil {
			p := newPartition(tp, h.env)
			err = fmt.Errorf("restore %v from quarantine: %w", tp, err)
			p.opened(nil, s, err)
			return p, err
		}
		h.log.Info("partition restored from quarantine", "partition", tp.String())
	}
	p := h.openPartition(tp, s)
	if p.unopened() {
		return p, fmt.Errorf("open the log of %v: %w", tp, p.trouble())
	}
	return p, nil
}

// assign applies the planned topics, in the order of the Image.
func (ps *pass) assign() {
	for i := range ps.topics {
		w := &ps.topics[i]
		for n, state := range w.topic.Partitions {
			p := ps.h.partition(kafka.TopicPartition{Topic: w.topic.ID, Partition: int32(n)})
			if p == nil || !slices.Contains(state.Replicas, ps.h.env.node) {
				continue
			}
			err := p.assign(assignment{
				state: state, topic: w.config, settings: w.settings, registered: ps.registered,
				kept: w.topic.State == metadata.StateDeleted,
			})
			if err != nil {
				w.failed = true
				ps.errs = append(ps.errs, err)
			}
		}
		ps.replicated = ps.replicated || w.settings.policy == storage.Replicated
		if !w.failed {
			ps.h.rec.seen[w.topic.ID] = w.topic
		}
	}
}

// purge hands the replicas that the Image asks this node to delete to the trash (I10: a committed record names them).
func (ps *pass) purge() {
	if ps.h.rec.purges != nil && ps.img.SamePurges(ps.h.rec.purges) {
		return
	}
	ps.h.rec.purges = ps.img
	pending := ps.img.PendingPurges(ps.h.env.node)
	for _, tp := range pending {
		ps.h.stop(tp)
		delete(ps.h.rec.quarantined, tp) // a quarantined copy goes too
	}
	ps.h.trash.set(pending)
}

// stop ends a partition. Its log is closed by whoever drops or moves the directory.
func (h *Host) stop(tp kafka.TopicPartition) {
	h.mu.Lock()
	p := h.mu.partitions[tp]
	delete(h.mu.partitions, tp)
	h.mu.Unlock()
	if p != nil {
		p.retire(ErrUnknownPartition)
	}
}

// quarantine sets aside what the Image does not give to this node. Not before the Image holds this process's own
// registration: that is a commit index the controller reported at this start, so an Image that is merely old never makes
// data look unknown (I10).
func (ps *pass) quarantine() {
	if !ps.registered {
		return
	}
	suspects := ps.released
	if ps.full {
		suspects = ps.h.Partitions()
	}
	unmoved := ps.h.rec.unmoved
	for tp := range unmoved {
		suspects = append(suspects, tp)
	}
	for _, tp := range suspects {
		_, again := unmoved[tp]
		delete(unmoved, tp)
		if (!again && ps.h.partition(tp) == nil) || ps.wanted(tp) {
			continue
		}
		ps.h.stop(tp)
		if err := ps.h.dir.QuarantineLog(tp); err != nil {
			unmoved[tp] = struct{}{}
			ps.errs = append(ps.errs, fmt.Errorf("quarantine %v: %w", tp, err))
			continue
		}
		ps.h.rec.quarantined[tp] = struct{}{}
		ps.h.log.Warn("partition is not in the metadata: moved to quarantine", "partition", tp.String())
	}
}

// wanted says whether the Image gives a replica of the partition to this node.
func (ps *pass) wanted(tp kafka.TopicPartition) bool {
	t := ps.img.TopicByID(tp.Topic)
	if t == nil || int(tp.Partition) >= len(t.Partitions) {
		return false
	}
	return slices.Contains(t.Partitions[tp.Partition].Replicas, ps.h.env.node)
}

// wake sends a signal that is not lost and does not pile up.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
