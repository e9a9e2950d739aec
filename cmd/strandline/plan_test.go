package main

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"strandline.dev/internal/plan"
)

// newTestOffsets makes ends of a topic's partitions.
func newTestOffsets(topics map[string][]int64) kadm.ListedOffsets {
	out := kadm.ListedOffsets{}
	for topic, ends := range topics {
		out[topic] = map[int32]kadm.ListedOffset{}
		for p, at := range ends {
			out[topic][int32(p)] = kadm.ListedOffset{Topic: topic, Partition: int32(p), Offset: at}
		}
	}
	return out
}

// newTestLoad is ten seconds of two topics on three nodes: t gets 100 records a second of 10 bytes, 75 of them into one partition; u gets 10 of 1000.
func newTestLoad() *measuredLoad {
	v := newTestView()
	v.Partitions = v.Partitions[:2]
	v.Partitions = append(v.Partitions, viewPartition{Topic: "u", Leader: 3, Replicas: []int32{3}, ISR: []int32{3}})
	at := time.Unix(1000, 0)
	before := loadSample{
		at: at, end: newTestOffsets(map[string][]int64{"t": {0, 250}, "u": {900}}),
		http: map[string]float64{"strandline_produce_bytes_total": 1e6, "strandline_fetch_bytes_total": 5e6},
	}
	after := loadSample{
		at: at.Add(10 * time.Second), starts: newTestOffsets(map[string][]int64{"t": {0, 0}, "u": {500}}),
		end:   newTestOffsets(map[string][]int64{"t": {250, 1000}, "u": {1000}}),
		sizes: sizes{"t-0": {1: 2500, 2: 2500, 3: 2500}, "t-1": {1: 9000, 2: 10_000, 3: 10_000}, "u-0": {3: 500_000}},
		http:  map[string]float64{"strandline_produce_bytes_total": 2e6, "strandline_fetch_bytes_total": 8e6},
	}
	load := judgeLoad(v, before, after)
	for i := range load.Topics {
		load.Topics[i].RetentionSeconds = map[string]float64{"t": 1000, "u": 3000}[load.Topics[i].Topic]
	}
	load.Groups = 7
	return load
}

// TestPlan_ClusterIsMeasured: rates, sizes and skew of two looks.
func TestPlan_ClusterIsMeasured(t *testing.T) {
	m := newTestLoad()
	if m.Rate != 110 || m.Zones != 3 || m.Partitions != 3 || m.FanOut != 3 || m.WindowSeconds != 10 {
		t.Errorf("%+v", m)
	}
	x, u := m.Topics[0], m.Topics[1]
	if x.Topic != "t" || x.Rate != 100 || x.RecordBytes != 10 || x.Replicas != 3 || x.StoredBytes != 36_500 || x.HotPartition != 1 || x.HotPart != 0.75 {
		t.Errorf("%+v", x)
	}
	if u.Rate != 10 || u.RecordBytes != 1000 || u.HotPart != 1 {
		t.Errorf("%+v", u)
	}
	if m.HotTopic != "u" || math.Abs(m.HotPart-10_000.0/11_000) > 1e-9 { // by bytes, not records
		t.Errorf("%+v", m)
	}
	for i, want := range []measuredNode{{1, "a", 25, 11_500, 0}, {2, "b", 75, 12_500, 0}, {3, "c", 10, 512_500, 0}, {4, "a", 0, 0, 0}} {
		if m.Nodes[i] != want {
			t.Errorf("%+v, want %+v", m.Nodes[i], want)
		}
	}
}

// TestPlan_MeasuredInputsKeepTheSums: topics that differ become one workload that stores and publishes what they do together; a flag wins.
func TestPlan_MeasuredInputsKeepTheSums(t *testing.T) {
	m := newTestLoad()
	m.Nodes[0].DiskBytes, m.Nodes[1].DiskBytes = 2e9, 1e9
	in := plan.Reference()
	m.fill(&in, func(string) bool { return false })
	r, err := plan.Compute(in)
	if err != nil || math.Abs(r.Ingress-11_000) > 1e-6 || math.Abs(r.StoredBytes-(1000*1000*3+10_000*3000*1)) > 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if in.Peak != 110 || in.Groups != 3 || in.DiskBytes != 1e9 || in.Zones != 3 || in.Partitions != 3 {
		t.Errorf("%+v", in)
	}
	in = plan.Reference()
	m.FanOut = -1
	m.fill(&in, func(flag string) bool {
		return slices.Contains([]string{"rate", "size", "retention", "disk", "zones"}, flag)
	})
	if in.Rate != 3000 || in.Peak != 3000 || in.RecordBytes != 1024 || in.Retention != plan.Reference().Retention || in.DiskBytes != 1e12 || in.Zones != 1 || in.Groups != 7 {
		t.Errorf("%+v", in)
	}
}

// TestPlan_WhatIsNotKnownIsSaid: an offset or size that is missing counts as idle, not as zero; assumptions are notes.
func TestPlan_WhatIsNotKnownIsSaid(t *testing.T) {
	v := newTestView()
	at := time.Unix(1000, 0)
	m := judgeLoad(v, loadSample{at: at}, loadSample{at: at.Add(time.Second), end: newTestOffsets(map[string][]int64{"t": {5, 5, 5, 5}})})
	if m.Rate != 0 || m.Topics[0].RecordBytes != 0 || m.HotPart != 0 || m.FanOut != -1 {
		t.Errorf("%+v", m)
	}
	m.Topics[0].RetentionSeconds, m.Topics[0].Compacted = -1, true
	in := plan.Reference()
	m.fill(&in, func(string) bool { return false })
	if in.RecordBytes != 1024 || in.Retention != plan.Reference().Retention || in.DiskBytes != 1e12 {
		t.Errorf("%+v", in)
	}
	notes := strings.Join(m.notes(in, func(string) bool { return false }), "\n")
	for _, want := range []string{"give --peak", "each of the 0 consumer groups", "kept for ever, planned as if for 14 days: t", "compacted, so they store less than is planned: t"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%s\nwant %q", notes, want)
		}
	}
	if notes := m.notes(in, func(string) bool { return true }); len(notes) != 1 { // all but that of the compacted topic
		t.Error(notes)
	}
}
