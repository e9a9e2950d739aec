package plan

import (
	"fmt"
	"math"
	"time"
)

// Inputs are the workload and the machines. Bytes are bytes, rates are a second, parts are between 0 and 1.
type Inputs struct {
	Workload
	Cluster
	Measured
	Backlog
	Prices
}

// Workload is what is published and read.
type Workload struct {
	Rate        float64       `json:"rate"`        // records a second published, on average
	Peak        float64       `json:"peak"`        // the same at the peak
	RecordBytes float64       `json:"recordBytes"` // of one record before compression
	Retention   time.Duration `json:"-"`
	Replicas    float64       `json:"replicas"`
	Groups      float64       `json:"groups"` // consumer groups that read everything
	Partitions  float64       `json:"partitions"`
	Growth      float64       `json:"growth"`   // factor on both rates; 1: as they are
	HotPart     float64       `json:"hotShare"` // part of everything that goes to the busiest partition; 0: all get the same
}

// Cluster is what holds it.
type Cluster struct {
	DiskBytes float64 `json:"diskBytes"` // of one broker
	DiskPart  float64 `json:"diskPart"`  // of the disk that may be filled
	Zones     float64 `json:"zones"`     // 1: zones play no part
	Spare     float64 `json:"spare"`     // brokers more than needed, in each zone: their loss leaves room to copy the data again
	SendBytes float64 `json:"sendBytes"` // that one broker may send a second, as measured; 0: not looked at
}

// Measured is what the bare estimate leaves out.
type Measured struct {
	Compression float64 `json:"compression"` // sent and stored bytes / record bytes; 1: none
	IndexPart   float64 `json:"indexPart"`   // bytes stored beside the records, as a part of them
	WirePart    float64 `json:"wirePart"`    // bytes of the protocol beside the records, as a part of them
	MovePart    float64 `json:"movePart"`    // traffic of moves and catching up, as a part of replication
}

// Backlog is a group that is slower than what comes. Growth is not applied to it.
type Backlog struct {
	BacklogIn   float64       `json:"backlogIn"`  // records a second that come
	BacklogOut  float64       `json:"backlogOut"` // records a second that it works off
	BacklogTime time.Duration `json:"-"`          // how long it has been so
	CatchUpOut  float64       `json:"catchUpOut"` // records a second that it works off afterwards
}

// Prices are in any currency; 0: free.
type Prices struct {
	DiskPrice   float64 `json:"diskPrice"`   // of one TB of disk a month
	BrokerPrice float64 `json:"brokerPrice"` // of one broker a month, without its disk
	ZonePrice   float64 `json:"zonePrice"`   // of one GB between zones
	EgressPrice float64 `json:"egressPrice"` // of one GB to consumers, wherever they are
}

// Reference is the workload of the reference estimate.
func Reference() Inputs {
	return Inputs{
		Workload: Workload{
			Rate: 3000, Peak: 10_000, RecordBytes: 1024, Retention: 14 * 24 * time.Hour, Replicas: 3, Groups: 2, Partitions: 64, Growth: 1,
		},
		Cluster:  Cluster{DiskBytes: 1e12, DiskPart: 0.7, Zones: 1},
		Measured: Measured{Compression: 1},
		Backlog:  Backlog{BacklogIn: 300, BacklogOut: 200, BacklogTime: time.Hour, CatchUpOut: 400},
	}
}

// check says which input is wrong, by the name of its flag.
func (in *Inputs) check() error {
	for _, c := range []struct {
		name        string
		value       float64
		least, most float64
	}{
		{"rate", in.Rate, 0, 1e12}, {"peak", in.Peak, 0, 1e12}, {"size", in.RecordBytes, 1, 1e9},
		{"retention (in seconds)", in.Retention.Seconds(), 1, Never.Seconds()},
		{"replicas", in.Replicas, 1, 9}, {"groups", in.Groups, 0, 1e6}, {"partitions", in.Partitions, 1, 1e7}, {"growth", in.Growth, 0.001, 1e6},
		{"hot-share", in.HotPart, 0, 1},
		{"disk", in.DiskBytes, 1, 1e18}, {"fill", in.DiskPart, 0.01, 1}, {"zones", in.Zones, 1, 100}, {"spare", in.Spare, 0, 1e6},
		{"send", in.SendBytes, 0, 1e15},
		{"compression", in.Compression, 0.001, 10}, {"index-overhead", in.IndexPart, 0, 10}, {"protocol-overhead", in.WirePart, 0, 10},
		{"move-traffic", in.MovePart, 0, 10},
		{"backlog-in", in.BacklogIn, 0, 1e12}, {"backlog-out", in.BacklogOut, 0, 1e12},
		{"backlog-for (in seconds)", in.BacklogTime.Seconds(), 0, Never.Seconds()}, {"catch-up", in.CatchUpOut, 0, 1e12},
		{"disk-price", in.DiskPrice, 0, 1e9}, {"broker-price", in.BrokerPrice, 0, 1e9},
		{"zone-price", in.ZonePrice, 0, 1e9}, {"egress-price", in.EgressPrice, 0, 1e9},
	} {
		if math.IsNaN(c.value) || c.value < c.least || c.value > c.most {
			return fmt.Errorf("%w: %s is %v, want %v to %v", ErrInputs, c.name, c.value, c.least, c.most)
		}
	}
	for _, whole := range []struct {
		name  string
		value float64
	}{{"partitions", in.Partitions}, {"zones", in.Zones}, {"spare", in.Spare}} {
		if whole.value != math.Trunc(whole.value) {
			return fmt.Errorf("%w: %s is %v, want a whole number", ErrInputs, whole.name, whole.value)
		}
	}
	return nil
}
