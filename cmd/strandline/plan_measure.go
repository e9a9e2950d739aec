package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/plan"
)

// measuredLoad is what a cluster showed within a window.
type measuredLoad struct {
	WindowSeconds float64         `json:"windowSeconds"`
	Topics        []measuredTopic `json:"topics"` // busiest first
	Nodes         []measuredNode  `json:"nodes"`
	Zones         int             `json:"zones"`      // racks of the nodes, 1 when they have none
	Partitions    int             `json:"partitions"` // of the topics
	Groups        int             `json:"groups"`     // that the brokers know
	FanOut        float64         `json:"fanOut"`     // bytes read by bytes written, of the node behind --http; -1: not measured
	Rate          float64         `json:"rate"`       // records a second
	HotTopic      string          `json:"hotTopic,omitempty"`
	HotPartition  int32           `json:"hotPartition"`
	HotPart       float64         `json:"hotShare"` // of the bytes, of the busiest partition
}

type measuredTopic struct {
	Topic            string  `json:"topic"`
	Partitions       int     `json:"partitions"`
	Replicas         int     `json:"replicas"`
	Rate             float64 `json:"rate"`             // records a second
	RecordBytes      float64 `json:"recordBytes"`      // as stored; 0: nothing is stored
	StoredBytes      float64 `json:"storedBytes"`      // of all replicas that answered
	RetentionSeconds float64 `json:"retentionSeconds"` // -1: for ever; 0: not told
	Compacted        bool    `json:"compacted"`
	HotPartition     int32   `json:"hotPartition"`
	HotPart          float64 `json:"hotShare"` // of the topic's records in the window
}

// measuredNode is one broker with what it leads and holds.
type measuredNode struct {
	Node        int32   `json:"node"`
	Rack        string  `json:"rack,omitempty"`
	Rate        float64 `json:"rate"` // records a second into what it leads
	StoredBytes float64 `json:"storedBytes"`
	DiskBytes   float64 `json:"diskBytes"` // 0: not known
}

// loadSample is one look at ends and sizes.
type loadSample struct {
	at          time.Time
	starts, end kadm.ListedOffsets
	sizes       sizes
	http        map[string]float64
}

// measureLoad looks twice.
func (a *app) measureLoad(ctx context.Context, set settings, window time.Duration) (*measuredLoad, error) {
	s, err := openSession(set)
	if err != nil {
		return nil, err
	}
	defer s.close()
	within, cancel := s.bounded(ctx)
	defer cancel()
	v, err := s.view(within)
	if err != nil {
		return nil, s.explain(err, "cannot see the cluster")
	}
	v.Partitions = slices.DeleteFunc(v.Partitions, func(p viewPartition) bool { return p.Internal })
	before, err := s.sampleLoad(ctx, v)
	if err != nil {
		return nil, s.explain(err, "cannot measure the load")
	}
	begun := time.Now()
	stop := a.progress(func() string {
		return fmt.Sprintf("looking for %v of %v", time.Since(begun).Round(time.Second), window)
	})
	select {
	case <-time.After(window):
	case <-ctx.Done():
	}
	stop()
	if ctx.Err() != nil {
		return nil, &failure{what: "stopped measuring", why: ctx.Err()}
	}
	after, err := s.sampleLoad(ctx, v)
	if err != nil {
		return nil, s.explain(err, "cannot measure the load")
	}
	load := judgeLoad(v, before, after)
	return load, s.explain(s.describeLoad(ctx, load), "cannot measure the load")
}

func (s *session) sampleLoad(ctx context.Context, v *clusterView) (loadSample, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	var topics []string
	all := make([]*viewPartition, len(v.Partitions))
	for i := range v.Partitions {
		all[i] = &v.Partitions[i]
		topics = append(topics, v.Partitions[i].Topic)
	}
	slices.Sort(topics)
	out := loadSample{sizes: s.replicaSizes(ctx, all)}
	if topics = slices.Compact(topics); len(topics) > 0 { // with no name it would be asked about every topic
		var err error
		if out.starts, err = s.admin.ListStartOffsets(ctx, topics...); err != nil {
			return out, err
		}
		if out.end, err = s.admin.ListEndOffsets(ctx, topics...); err != nil {
			return out, err
		}
	}
	out.at = time.Now()
	if s.httpGiven {
		out.http = readMetrics(ctx, s.http+"/metrics", "strandline_produce_bytes_total", "strandline_fetch_bytes_total")
	}
	return out, nil
}

// offsetAt is an offset of a sample, false when it is not known.
func offsetAt(l kadm.ListedOffsets, p *viewPartition) (int64, bool) {
	o, ok := l.Lookup(p.Topic, p.Partition)
	return o.Offset, ok && o.Err == nil && o.Offset >= 0
}

// judgeLoad makes rates, sizes and skew of two looks. A partition whose ends are not known counts as idle.
func judgeLoad(v *clusterView, before, after loadSample) *measuredLoad {
	elapsed := after.at.Sub(before.at).Seconds()
	load := &measuredLoad{WindowSeconds: elapsed, Topics: []measuredTopic{}, Zones: 1, Partitions: len(v.Partitions), FanOut: -1}
	nodes := map[int32]*measuredNode{}
	racks := map[string]bool{}
	for _, n := range v.Nodes {
		nodes[n.ID] = &measuredNode{Node: n.ID, Rack: n.Rack}
		if n.Rack != "" {
			racks[n.Rack] = true
		}
	}
	load.Zones = max(1, len(racks))
	byTopic := map[string][]*viewPartition{}
	for i := range v.Partitions {
		byTopic[v.Partitions[i].Topic] = append(byTopic[v.Partitions[i].Topic], &v.Partitions[i])
	}
	var bytes, hotBytes float64
	for name, partitions := range byTopic {
		t, rates := judgeTopic(name, partitions, before, after, nodes)
		load.Topics = append(load.Topics, t)
		load.Rate += t.Rate
		bytes += t.Rate * t.RecordBytes
		hot := rates[t.HotPartition] * t.RecordBytes
		if hot > hotBytes || hot == hotBytes && hot > 0 && name < load.HotTopic {
			hotBytes, load.HotTopic, load.HotPartition = hot, name, t.HotPartition
		}
	}
	if bytes > 0 {
		load.HotPart = hotBytes / bytes
	}
	slices.SortFunc(load.Topics, func(x, y measuredTopic) int {
		return cmp.Or(cmp.Compare(y.Rate, x.Rate), cmp.Compare(x.Topic, y.Topic))
	})
	for _, n := range v.Nodes {
		load.Nodes = append(load.Nodes, *nodes[n.ID])
	}
	in := after.http["strandline_produce_bytes_total"] - before.http["strandline_produce_bytes_total"]
	if out := after.http["strandline_fetch_bytes_total"] - before.http["strandline_fetch_bytes_total"]; in > 0 && out >= 0 {
		load.FanOut = out / in
	}
	return load
}

// judgeTopic is about one topic; it adds what the nodes lead and hold, and returns the records a second of each partition.
func judgeTopic(name string, partitions []*viewPartition, before, after loadSample, nodes map[int32]*measuredNode) (measuredTopic, map[int32]float64) {
	t := measuredTopic{Topic: name, Partitions: len(partitions)}
	rates := map[int32]float64{}
	var records, leaderBytes float64
	for _, p := range partitions {
		t.Replicas = max(t.Replicas, len(p.Replicas))
		for node, size := range after.sizes[p.name()] {
			t.StoredBytes += float64(size)
			if n := nodes[node]; n != nil {
				n.StoredBytes += float64(size)
			}
		}
		was, known := offsetAt(before.end, p)
		is, stillKnown := offsetAt(after.end, p)
		if !known || !stillKnown {
			continue
		}
		rate := max(0, float64(is-was)) / after.at.Sub(before.at).Seconds()
		rates[p.Partition] = rate
		t.Rate += rate
		if n := nodes[p.Leader]; n != nil {
			n.Rate += rate
		}
		if rate > rates[t.HotPartition] {
			t.HotPartition = p.Partition
		}
		start, startKnown := offsetAt(after.starts, p)
		size, sized := after.sizes[p.name()][p.Leader]
		if startKnown && sized {
			records, leaderBytes = records+float64(is-start), leaderBytes+float64(size)
		}
	}
	if records > 0 {
		t.RecordBytes = leaderBytes / records
	}
	if t.Rate > 0 {
		t.HotPart = rates[t.HotPartition] / t.Rate
	}
	return t, rates
}

// describeLoad adds what is set, not moving: retention, disks, groups.
func (s *session) describeLoad(ctx context.Context, load *measuredLoad) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	at := map[string]*measuredTopic{}
	var names []string
	for i := range load.Topics {
		at[load.Topics[i].Topic] = &load.Topics[i]
		names = append(names, load.Topics[i].Topic)
	}
	if len(names) > 0 {
		described, err := s.admin.DescribeTopicConfigs(ctx, names...)
		if err != nil {
			return err
		}
		for _, r := range described {
			for _, c := range r.Configs {
				switch c.Key {
				case "retention.ms":
					if ms, err := strconv.ParseFloat(c.MaybeValue(), 64); err == nil {
						at[r.Name].RetentionSeconds = max(-1, ms/1000)
					}
				case "cleanup.policy":
					at[r.Name].Compacted = c.MaybeValue() == "compact"
				}
			}
		}
	}
	groups, err := s.admin.ListGroups(ctx)
	if err != nil {
		return err
	}
	load.Groups = len(groups)
	for i := range load.Nodes {
		load.Nodes[i].DiskBytes = s.diskBytes(ctx, load.Nodes[i].Node)
	}
	return nil
}

// diskBytes is the size of a node's disk, 0 when it is not known.
func (s *session) diskBytes(ctx context.Context, node int32) float64 {
	req := kmsg.NewPtrDescribeLogDirsRequest()
	req.Topics = []kmsg.DescribeLogDirsRequestTopic{} // none; null would be all
	answer, err := s.client.Broker(int(node)).RetriableRequest(ctx, req)
	if err != nil {
		return 0
	}
	var total float64
	for _, d := range answer.(*kmsg.DescribeLogDirsResponse).Dirs {
		total += max(0, float64(d.TotalBytes))
	}
	return total
}

// fill puts what was measured into the inputs, where no flag was given. Topics differ; what they store and replicate together is kept:
// each mean is weighted by what it is multiplied with.
func (m *measuredLoad) fill(in *plan.Inputs, given func(string) bool) {
	set := func(flag string, at *float64, value float64) {
		if !given(flag) && value > 0 {
			*at = value
		}
	}
	if !given("rate") {
		in.Rate = m.Rate
	}
	if !given("peak") {
		in.Peak = in.Rate
	}
	var bytes, kept, copied float64
	for _, t := range m.Topics {
		retention := t.RetentionSeconds
		if retention <= 0 {
			retention = in.Retention.Seconds()
		}
		bytes += t.Rate * t.RecordBytes
		kept += t.Rate * t.RecordBytes * retention
		copied += t.Rate * t.RecordBytes * retention * float64(t.Replicas)
	}
	if m.Rate > 0 {
		set("size", &in.RecordBytes, bytes/m.Rate)
	}
	if bytes > 0 && !given("retention") {
		in.Retention = time.Duration(min(kept/bytes, plan.Never.Seconds()/2) * float64(time.Second))
	}
	if kept > 0 {
		set("replicas", &in.Replicas, copied/kept)
	}
	set("partitions", &in.Partitions, float64(m.Partitions))
	set("hot-share", &in.HotPart, m.HotPart)
	set("zones", &in.Zones, float64(m.Zones))
	set("disk", &in.DiskBytes, m.smallestDisk())
	if groups := float64(m.Groups); !given("groups") {
		if m.FanOut >= 0 {
			groups = m.FanOut
		}
		in.Groups = groups
	}
}

func (m *measuredLoad) smallestDisk() float64 {
	smallest := math.Inf(1)
	for _, n := range m.Nodes {
		if n.DiskBytes > 0 {
			smallest = min(smallest, n.DiskBytes)
		}
	}
	if math.IsInf(smallest, 1) {
		return 0
	}
	return smallest
}
