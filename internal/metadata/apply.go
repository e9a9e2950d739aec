package metadata

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"strandline.dev/internal/kafka"
)

// Apply returns the Image after the records of the entry at the given version. The old Image stays as it was. On an error (ErrStale,
// ErrRecord) nothing has been applied: the entry is not one this release can have written (C080). How records are grouped into entries does
// not change the outcome.
func (i *Image) Apply(version uint64, rs []Record) (*Image, error) {
	if version < i.version {
		return nil, fmt.Errorf("%w: %d after %d", ErrStale, version, i.version)
	}
	d := i.draft()
	for n, r := range rs {
		if err := d.apply(r); err != nil {
			return nil, fmt.Errorf("entry %d, record %d of %d: %w", version, n+1, len(rs), err)
		}
	}
	d.version = version
	next := d.Image
	return &next, nil
}

// apply is the one place where an Image changes.
func (d *draft) apply(r Record) error {
	switch r := r.(type) {
	case ClusterRecord:
		return d.applyCluster(r)
	case BrokerRecord:
		return d.applyBroker(r)
	case BrokerStateRecord:
		return d.applyBrokerState(r)
	case BrokerRemovedRecord:
		return d.applyBrokerRemoved(r)
	case TopicRecord:
		return d.applyTopic(r)
	case TopicStateRecord:
		return d.applyTopicState(r)
	case PartitionRecord:
		return d.applyPartition(r)
	case ConfigRecord:
		return d.applyConfig(r)
	case ProducerIDsRecord:
		return d.applyProducerIDs(r)
	case ReplicaPurgeRecord:
		return d.applyReplicaPurge(r)
	}
	return d.applyAccess(r)
}

// applyAccess applies the records of access.go and quota.go.
func (d *draft) applyAccess(r Record) error {
	switch r := r.(type) {
	case ACLRecord:
		return d.applyACL(r)
	case ScramRecord:
		return d.applyScram(r)
	case ScramSecretRecord:
		return d.applyScramSecret(r)
	case QuotaRecord:
		return d.applyQuota(r)
	}
	return bad("type %T is unknown", r)
}

// bad describes a record that cannot follow.
func bad(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrRecord, fmt.Sprintf(format, args...))
}

func (d *draft) applyCluster(r ClusterRecord) error {
	if r.ClusterID == "" || d.clusterID != "" && d.clusterID != r.ClusterID {
		return bad("cluster id %q after %q", r.ClusterID, d.clusterID)
	}
	d.clusterID, d.voters = r.ClusterID, r.Voters
	return nil
}

func (d *draft) applyBroker(r BrokerRecord) error {
	b := &Broker{
		ID: r.Node, Epoch: r.Epoch, Incarnation: r.Incarnation, Directory: r.Directory, StartNumber: r.StartNumber, BootID: r.BootID,
		Rack: r.Rack, ClusterAddress: r.ClusterAddress, Listeners: r.Listeners, Roles: r.Roles, Registered: time.UnixMilli(r.RegisteredMs).UTC(),
		Fenced: true,
	}
	if r.Node < 0 {
		return bad("broker %v", r.Node)
	}
	d.changeBrokers()
	at, known := d.brokerAt(r.Node)
	if !known {
		d.brokers = slices.Insert(d.brokers, at, b)
		return nil
	}
	if old := d.brokers[at]; r.Epoch <= old.Epoch { // I3: every start has a higher broker epoch
		return bad("broker %v: epoch %d after %d", r.Node, r.Epoch, old.Epoch)
	}
	d.brokers[at] = b
	return nil
}

func (d *draft) applyBrokerState(r BrokerStateRecord) error {
	at, known := d.brokerAt(r.Node)
	if !known || d.brokers[at].Epoch != r.Epoch {
		return bad("broker %v is not registered with epoch %d", r.Node, r.Epoch)
	}
	d.changeBrokers()
	b := *d.brokers[at]
	b.Fenced, b.Stopping = r.Fenced, r.Stopping
	d.brokers[at] = &b
	return nil
}

func (d *draft) applyBrokerRemoved(r BrokerRemovedRecord) error {
	at, known := d.brokerAt(r.Node)
	if !known {
		return bad("broker %v is not registered", r.Node)
	}
	d.changeBrokers()
	d.brokers = slices.Delete(d.brokers, at, at+1)
	d.configs = without(d.configs, r.Node)
	for _, tp := range d.PendingPurges(r.Node) { // its directories are gone with it
		d.donePurge(purgeKey{r.Node, tp.Topic, tp.Partition})
	}
	return nil
}

func (d *draft) applyProducerIDs(r ProducerIDsRecord) error {
	if r.Next < d.producerID { // an id handed out twice would let one producer's retry pass for another's (I12)
		return bad("producer ids go back from %d to %d", d.producerID, r.Next)
	}
	d.producerID = r.Next
	return nil
}

func (d *draft) applyConfig(r ConfigRecord) error {
	if r.Key == "" {
		return bad("config without a key")
	}
	if r.Topic.IsZero() {
		next := withConfig(d.configs[r.Node], r.Key, r.Value)
		d.configs = without(d.configs, r.Node)
		if len(next) > 0 {
			d.configs[r.Node] = next
		}
		return nil
	}
	t := d.change(r.Topic)
	if t == nil {
		return bad("config %s of an unknown topic %s", r.Key, r.Topic)
	}
	before := t.minInsync()
	t.Configs = withConfig(t.Configs, r.Key, r.Value)
	after := t.minInsync()
	if before == after || t.State == StatePurging {
		return nil
	}
	for p := range t.Partitions { // I1: the field follows the config in this very record
		s := t.Partitions[p]
		settle(&s, after)
		if s.EffectiveMinISR != t.Partitions[p].EffectiveMinISR {
			s.PartitionEpoch++
			t.Partitions[p] = s
		}
	}
	return nil
}

// withConfig returns a copy with the key set, or removed.
func withConfig(configs map[string]string, key string, value *string) map[string]string {
	out := make(map[string]string, len(configs)+1)
	maps.Copy(out, configs)
	if value == nil {
		delete(out, key)
	} else {
		out[key] = *value
	}
	return out
}

// without returns a copy that lacks a node.
func without(configs map[kafka.NodeID]map[string]string, node kafka.NodeID) map[kafka.NodeID]map[string]string {
	out := make(map[kafka.NodeID]map[string]string, len(configs)+1)
	maps.Copy(out, configs)
	delete(out, node)
	return out
}
