package plan

import (
	"math"
	"time"
)

// Result is the estimate: bytes, bytes a second, and brokers. It has a field for each figure of the requirements, and those that they follow from.
type Result struct {
	Ingress, DayBytes, LogicalBytes, StoredBytes       float64
	Floor                                              float64 // brokers that hold the stored bytes, and no more
	SendFloor                                          float64 // brokers that can send what is sent at the peak, one zone lost; 0: not asked
	Even                                               float64 // brokers, as many in each zone; 0: zones play no part
	Start                                              float64 // brokers to start with: Even or the larger floor, and those that are spare
	PeakIngress, PeakReplication, PeakEgress, PeakSent float64
	BrokerSent, BrokerSentZoneLost                     float64 // of one of Start brokers, at the peak, and when a zone is lost
	BrokerReplicas                                     float64 // partitions x replicas that one of Start brokers holds
	HotIngress, HotBytes                               float64 // of the busiest partition: at the peak; over its retention, one replica
	Owners                                             float64 // in one group
	BacklogHour, BacklogHourBytes                      float64 // by which the backlog grows in an hour; negative: it shrinks
	TimeToLoss, CatchUp                                time.Duration
	Cost                                               float64 // a month; 0: no prices
}

// Never stands for a time that does not come.
const Never = time.Duration(math.MaxInt64)

// month is that of prices, 30 days.
const month = 30 * 24 * time.Hour

// Compute makes the estimate.
func Compute(in Inputs) (Result, error) {
	if err := in.check(); err != nil {
		return Result{}, err
	}
	var r Result
	bytes := in.RecordBytes * in.Compression
	r.Ingress = in.Rate * in.Growth * bytes
	r.DayBytes = r.Ingress * 24 * 3600
	r.LogicalBytes = r.Ingress * in.Retention.Seconds()
	r.StoredBytes = r.LogicalBytes * in.Replicas * (1 + in.IndexPart)

	r.PeakIngress = in.Peak * in.Growth * bytes * (1 + in.WirePart)
	r.PeakReplication = r.PeakIngress * (in.Replicas - 1) * (1 + in.MovePart)
	r.PeakEgress = r.PeakIngress * in.Groups
	r.PeakSent = r.PeakReplication + r.PeakEgress
	hot := max(in.HotPart, 1/in.Partitions)
	r.HotIngress, r.HotBytes = r.PeakIngress*hot, r.LogicalBytes*hot*(1+in.IndexPart)

	r.brokers(&in)
	r.Owners = in.Partitions
	r.backlog(&in)
	r.cost(&in)
	return r, nil
}

// brokers counts them, and shares the load out.
func (r *Result) brokers(in *Inputs) {
	r.Floor = max(math.Ceil(r.StoredBytes/(in.DiskBytes*in.DiskPart)), math.Ceil(in.Replicas))
	zoneLost := 1.0 // what the brokers that are left send, of what they sent
	if in.Zones > 1 {
		zoneLost = in.Zones / (in.Zones - 1)
	}
	if in.SendBytes > 0 {
		r.SendFloor = math.Ceil(r.PeakSent * zoneLost / in.SendBytes)
	}
	r.Start = max(r.Floor, r.SendFloor) + in.Spare
	if in.Zones > 1 {
		r.Even = math.Ceil(max(r.Floor, r.SendFloor)/in.Zones) * in.Zones
		r.Start = r.Even + in.Zones*max(in.Spare, 1)
	}
	r.BrokerSent = r.PeakSent / r.Start
	r.BrokerSentZoneLost = r.BrokerSent * zoneLost
	r.BrokerReplicas = in.Partitions * in.Replicas / r.Start
}

// backlog: the age of a slow group's oldest record grows by (in - out) / in a second, so it reaches the retention after
// retention x in / (in - out), counted from when the group was not behind.
func (r *Result) backlog(in *Inputs) {
	net := in.BacklogIn - in.BacklogOut
	r.BacklogHour = net * 3600
	r.BacklogHourBytes = r.BacklogHour * in.RecordBytes * in.Compression
	r.TimeToLoss, r.CatchUp = Never, Never
	if net > 0 {
		r.TimeToLoss = seconds(in.Retention.Seconds()*in.BacklogIn/net - in.BacklogTime.Seconds())
	}
	switch behind := max(net, 0) * in.BacklogTime.Seconds(); {
	case behind == 0:
		r.CatchUp = 0
	case in.CatchUpOut > in.BacklogIn:
		r.CatchUp = seconds(behind / (in.CatchUpOut - in.BacklogIn))
	}
}

// cost is that of a month at the average rate.
func (r *Result) cost(in *Inputs) {
	gb := r.Ingress * (1 + in.WirePart) * month.Seconds() / 1e9
	r.Cost = r.Start * (in.DiskPrice*in.DiskBytes/1e12 + in.BrokerPrice)
	r.Cost += in.EgressPrice * gb * in.Groups
	// A client is in the leader's zone by chance.
	r.Cost += in.ZonePrice * gb * (copiesOutside(in.Replicas, in.Zones)*(1+in.MovePart) + (1+in.Groups)*(in.Zones-1)/in.Zones)
}

// copiesOutside is how many of a partition's followers are in another zone than its leader, on average, when replicas are spread evenly over the
// zones and each leads as often.
func copiesOutside(replicas, zones float64) float64 {
	each := math.Floor(replicas / zones)
	more := replicas - each*zones // zones with one more
	together := more*(each+1)*(each+1) + (zones-more)*each*each
	return replicas - together/replicas
}

// seconds is a time that may be too long to be told.
func seconds(s float64) time.Duration {
	if s >= Never.Seconds() {
		return Never
	}
	return time.Duration(max(s, 0) * float64(time.Second))
}
