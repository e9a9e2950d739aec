package group

import (
	"slices"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// Report is the backlog of one group as an operator asks for it.
type Report struct {
	Group      string
	Members    int
	State      BacklogState // the worst of the partitions; CaughtUp when there are none, 0 when there is no such group
	Partitions []PartitionReport
	Undo       []StoredOffset
}

// PartitionReport is a group in one partition.
type PartitionReport struct {
	Topic     string
	ID        kafka.TopicID
	Partition int32
	BacklogFacts
	Backlog
}

// Worsen takes in the state of another partition.
func (r *Report) Worsen(s BacklogState) { r.State = max(r.State, s) }

// Trend sums up how the lag changes, in records a minute; false when it is not known of each partition: the rest alone would say something else.
func (r *Report) Trend() (perMinute int64, has bool) {
	for i := range r.Partitions {
		if !r.Partitions[i].HasTrend {
			return 0, false
		}
		perMinute += r.Partitions[i].Trend
	}
	return perMinute, len(r.Partitions) > 0
}

// Keep leaves out the topics that are not to be seen.
func (r *Report) Keep(sees func(topic string) bool) {
	r.Partitions = slices.DeleteFunc(r.Partitions, func(p PartitionReport) bool { return !sees(p.Topic) })
	r.Undo = slices.DeleteFunc(r.Undo, func(o StoredOffset) bool { return !sees(o.Topic) })
	r.State = min(r.State, CaughtUp)
	for i := range r.Partitions {
		r.Worsen(r.Partitions[i].State)
	}
}

// ReportType is the type of a Report in its header, and the number of the tag that carries it (docs/formats/group-requests.md).
const ReportType = 10002

// The least bytes of the parts of a report.
const (
	partitionReportBytes = 80
	undoBytes            = 14
)

// Append appends the report.
func (r *Report) Append(b []byte) []byte {
	e := wire.Encoder{B: b}
	e.Header(ReportType, 0)
	e.String(r.Group)
	e.Int32(int32(r.Members))
	e.Int8(int8(r.State))
	wire.AppendArray(&e, r.Partitions, appendPartitionReport)
	wire.AppendArray(&e, r.Undo, func(e *wire.Encoder, o StoredOffset) {
		e.String(o.Topic)
		e.Int32(o.Partition)
		e.Int64(int64(o.Offset))
		e.NoTags()
	})
	e.NoTags()
	return e.B
}

func appendPartitionReport(e *wire.Encoder, p PartitionReport) {
	e.String(p.Topic)
	e.ID(p.ID)
	e.Int32(p.Partition)
	e.Int8(int8(p.State))
	e.String(p.Rule)
	e.Int64(int64(p.Committed))
	e.Int64(int64(p.Start))
	e.Int64(int64(p.End))
	e.Int64(p.Lag)
	e.Int64(orNoneMs(p.Oldest, p.Lag > 0))
	e.Int64(orNoneMs(p.LossIn, p.Expires))
	e.Bool(p.HasTrend)
	e.Int64(p.Trend)
	e.Int64(int64(p.Lost.From))
	e.Int64(int64(p.Lost.To))
	e.NoTags()
}

// orNoneMs is a duration in milliseconds, or -1 for none.
func orNoneMs(d time.Duration, is bool) int64 {
	if !is {
		return -1
	}
	return d.Milliseconds()
}

// Decode reads a report.
func (r *Report) Decode(b []byte) error {
	d := wire.NewDecoder(b)
	d.ExpectHeader(ReportType, 0)
	r.Group, r.Members, r.State = d.String(), int(d.Int32()), BacklogState(d.Int8())
	r.Partitions = wire.ReadArray(d, partitionReportBytes, readPartitionReport)
	r.Undo = wire.ReadArray(d, undoBytes, func(d *wire.Decoder) StoredOffset {
		o := StoredOffset{Topic: d.String(), Partition: d.Int32(), Offset: kafka.Offset(d.Int64())}
		d.Tags(nil)
		return o
	})
	d.Tags(nil)
	return d.Done()
}

func readPartitionReport(d *wire.Decoder) PartitionReport {
	p := PartitionReport{Topic: d.String(), ID: d.ID(), Partition: d.Int32()}
	p.State, p.Rule = BacklogState(d.Int8()), d.String()
	p.Committed, p.Start, p.End = kafka.Offset(d.Int64()), kafka.Offset(d.Int64()), kafka.Offset(d.Int64())
	p.Lag = d.Int64()
	oldest, loss := d.Int64(), d.Int64()
	p.Oldest, p.LossIn, p.Expires = time.Duration(max(oldest, 0))*time.Millisecond, time.Duration(max(loss, 0))*time.Millisecond, loss >= 0
	p.HasTrend, p.Trend = d.Bool(), d.Int64()
	p.Lost = LostRange{From: kafka.Offset(d.Int64()), To: kafka.Offset(d.Int64())}
	p.Known = p.State != BacklogUnknown
	d.Tags(nil)
	return p
}
