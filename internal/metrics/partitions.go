package metrics

import (
	"net/http"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Counts are what a node knows at a scrape about partitions and its disk. Each partition is counted by one node, so that sums over the cluster
// are right: by its leader, or, when it has none, by the active controller.
type Counts struct {
	// ActiveController says that this node decides for the cluster.
	ActiveController bool
	// UnderReplicated and UnderMinISR are of the partitions that this node leads.
	UnderReplicated, UnderMinISR int
	// Offline are the cluster's partitions without a leader, if this node is the active controller.
	Offline int
	// DiskUsed and DiskLimit are of the disk limit that is reached first; DiskKnown says that it could be found out.
	DiskKnown           bool
	DiskUsed, DiskLimit int64
}

// Replica is one partition on a node, for /metrics/detail.
type Replica struct {
	Topic     string
	Partition int32
	// Leads says that this node leads it; ISR is then the size of its ISR.
	Leads bool
	ISR   int
	// LogStart, HighWatermark and LogEnd are offsets, LogBytes the size of the log.
	LogStart, HighWatermark, LogEnd, LogBytes int64
}

var (
	activeController = describe("strandline_active_controller", "1 on the node that decides for the cluster, else 0; the sum over the nodes is 1.")
	underReplicated  = describe("strandline_under_replicated_partitions", "Partitions led by this node with a replica that is not in sync.")
	underMinISR      = describe("strandline_under_min_isr_partitions", "Partitions led by this node with fewer replicas in sync than an acknowledgement by all takes.")
	offline          = describe("strandline_offline_partitions", "Partitions of the cluster without a leader, on the active controller; 0 elsewhere.")
	diskUsed         = describe("strandline_disk_used_bytes", "Bytes in use, of the disk or, where disk.limit.bytes is reached first, of the data directory.")
	diskLimit        = describe("strandline_disk_limit_bytes", "Bytes in use from which on records of user topics are refused.")

	isrSize   = describe("strandline_isr_size", "In-sync replicas of a partition led by this node.", "topic", "partition")
	logStart  = describe("strandline_partition_log_start_offset", "First offset of the copy on this node.", "topic", "partition")
	logEnd    = describe("strandline_partition_log_end_offset", "Offset after the last record of the copy on this node.", "topic", "partition")
	watermark = describe("strandline_partition_high_watermark", "Offset up to which this node knows records to be committed.", "topic", "partition")
	logBytes  = describe("strandline_partition_log_bytes", "Size of the copy on this node.", "topic", "partition")
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Busy is a partition that gets many records (R173).
type Busy struct {
	Topic     string
	Partition int32
	// Rate is in records a second. Skew is how many times the mean of the topic's other partitions that is, 0 where there is no other.
	Rate, Skew float64
}

// Busiest has f asked at each scrape of /metrics for the partitions led here that get most records; f bounds them.
func (r *Registry) Busiest(f func() []Busy) { r.prom.MustRegister(busiestCollector(f)) }

type busiestCollector func() []Busy

var (
	busyRate = describe("strandline_busiest_partition_records_per_second", "Records a second, over a minute, of the ten partitions led by this node that get most.", "topic", "partition")
	busySkew = describe("strandline_busiest_partition_skew", "How many times the mean of its topic's other partitions on this node such a partition gets, at most 1000.", "topic", "partition")
)

// Describe implements prometheus.Collector.
func (busiestCollector) Describe(ch chan<- *prometheus.Desc) { ch <- busyRate; ch <- busySkew }

// Collect implements prometheus.Collector.
func (f busiestCollector) Collect(ch chan<- prometheus.Metric) {
	for _, b := range f() {
		partition := strconv.Itoa(int(b.Partition))
		ch <- prometheus.MustNewConstMetric(busyRate, prometheus.GaugeValue, b.Rate, b.Topic, partition)
		if b.Skew > 0 {
			ch <- prometheus.MustNewConstMetric(busySkew, prometheus.GaugeValue, b.Skew, b.Topic, partition)
		}
	}
}

// Count has f asked at each scrape of /metrics.
func (r *Registry) Count(f func() Counts) { r.prom.MustRegister(countsCollector(f)) }

type countsCollector func() Counts

// Describe implements prometheus.Collector.
func (countsCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{activeController, underReplicated, underMinISR, offline, diskUsed, diskLimit} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (f countsCollector) Collect(ch chan<- prometheus.Metric) {
	c := f()
	set := func(d *prometheus.Desc, v float64) { ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v) }
	active := 0.0
	if c.ActiveController {
		active = 1
	}
	set(activeController, active)
	set(underReplicated, float64(c.UnderReplicated))
	set(underMinISR, float64(c.UnderMinISR))
	set(offline, float64(c.Offline))
	if c.DiskKnown {
		set(diskUsed, float64(c.DiskUsed))
		set(diskLimit, float64(c.DiskLimit))
	}
}

// Detail has each asked for the replicas on this node at each scrape of /metrics/detail. Topic names must be those of topics that exist.
func (r *Registry) Detail(each func(yield func(Replica))) {
	r.detail.MustRegister(detailCollector(each))
}

// DetailHandler serves what there is about each partition.
func (r *Registry) DetailHandler() http.Handler {
	return promhttp.HandlerFor(r.detail, promhttp.HandlerOpts{MaxRequestsInFlight: detailScrapesMax})
}

// detailScrapesMax bounds the scrapes at once: each holds some lines for every partition of the node (I14).
const detailScrapesMax = 2

type detailCollector func(yield func(Replica))

// Describe implements prometheus.Collector.
func (detailCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{isrSize, logStart, logEnd, watermark, logBytes} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (each detailCollector) Collect(ch chan<- prometheus.Metric) {
	each(func(r Replica) {
		partition := strconv.Itoa(int(r.Partition))
		set := func(d *prometheus.Desc, v int64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), r.Topic, partition)
		}
		if r.Leads {
			set(isrSize, int64(r.ISR))
		}
		set(logStart, r.LogStart)
		set(watermark, r.HighWatermark)
		set(logEnd, r.LogEnd)
		set(logBytes, r.LogBytes)
	})
}
