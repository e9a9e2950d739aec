package plan

// segmentBytes is segment.bytes unless a topic says otherwise: the piece in which retention removes records.
const segmentBytes = 1 << 30

// Lever is something that can be changed, what it moves, and where it ends.
type Lever struct {
	Change string `json:"change"`
	Moves  string `json:"moves"`
	Limit  string `json:"limit"`
}

// Levers are those that a cluster has, with the figures of this estimate (R172).
func (r Result) Levers(in Inputs) []Lever {
	return []Lever{
		{
			"more producers", "the rate of publishing, until the leaders are busy",
			"one leader writes each partition: the busiest takes " + Bytes(r.HotIngress) + "/s at the peak, whoever publishes; a hot key stays hot until the application chooses a better one",
		},
		{
			"more consumers", "the rate of a group, up to one owner a partition",
			"members beyond " + Number(r.Owners) + " are idle; one slow key holds up its partition; each further group adds " + Bytes(r.PeakIngress) + "/s of egress at the peak",
		},
		{
			"more brokers", "disk, network and leaders: each holds a smaller share",
			"partitions must be moved onto a new one (`strandline partition move --spread`), which is traffic; one partition, " + Bytes(r.HotBytes) +
				" for the busiest, stays on one disk and one leader",
		},
		{
			"more partitions", "owners in a group, and leaders to spread",
			"they cannot be taken away; keys go to other partitions from then on, so the order of a key is kept only on each side of the change; each costs " +
				Number(in.Replicas) + " replicas: open files, replication, and a longer fail-over",
		},
		{
			"shorter retention", "stored bytes: a day less is " + Bytes(r.StoredBytes/in.Retention.Hours()*24) + " less",
			"a group that is behind for longer loses records",
		},
	}
}

// Notes say what the estimate shows to be wrong, or near its end.
func (r Result) Notes(in Inputs) []string {
	var out []string
	note := func(applies bool, text string) {
		if applies {
			out = append(out, text)
		}
	}
	note(r.HotBytes > in.DiskBytes*in.DiskPart, "the busiest partition does not fit on one broker: "+Bytes(r.HotBytes)+" of "+
		Bytes(in.DiskBytes*in.DiskPart)+"; take larger disks, a shorter retention, or keys that spread better")
	note(in.SendBytes > 0 && r.BrokerSentZoneLost > in.SendBytes, "a broker would have to send "+Bytes(r.BrokerSentZoneLost)+"/s of the "+
		Bytes(in.SendBytes)+"/s it may")
	note(in.HotPart*in.Partitions >= 2, "the busiest partition gets "+Number(in.HotPart*in.Partitions)+
		" times its share: more consumers, brokers or partitions do not help it; a better key does")
	note(r.overPartitioned(in), "over-partitioned: a partition holds "+Bytes(r.LogicalBytes/in.Partitions)+" over its retention, less than one segment ("+
		Bytes(segmentBytes)+"); unless a group needs "+Number(in.Partitions)+" owners, fewer cost fewer files and a shorter fail-over")
	note(in.Peak < in.Rate, "the peak is below the average: give both for the same time")
	note(in.Zones > 1 && in.Replicas < in.Zones, "with fewer replicas than zones a partition is not in every zone")
	note(r.TimeToLoss == 0, "the slow group loses records already")
	note(r.CatchUp == Never, "the slow group never catches up: it works off no more than what comes")
	return out
}

// overPartitioned says that partitions are so small that retention cannot work by them (R186): each is one segment, and costs what a full one does.
func (r Result) overPartitioned(in Inputs) bool {
	return in.Partitions > 1 && r.LogicalBytes/in.Partitions < segmentBytes
}
