package plan

import (
	"fmt"
	"time"
)

// Figure is one result, for a table or a program.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"` // in Unit; -1: never
	Unit  string  `json:"unit"`
	Text  string  `json:"text"` // the value for people
	From  string  `json:"from"` // the sum, in words
}

// Figures names the results in the order in which they follow from each other.
func (r Result) Figures(in Inputs) []Figure {
	out := []Figure{
		bytesFigure("ingress", r.Ingress, "/s", "records a second x bytes"+given(in.Compression != 1, " x compression")),
		{"a day", r.DayBytes, "B/day", rounded(r.DayBytes, 3) + "/day", "ingress x 86,400 s = " + rounded(r.DayBytes, 5)},
		bytesFigure("retained", r.LogicalBytes, "", "ingress x "+Time(in.Retention)),
		bytesFigure("stored", r.StoredBytes, "", "retained x "+Number(in.Replicas)+" replicas"+given(in.IndexPart > 0, " x indexes")),
		counted("broker floor", r.Floor, "brokers", "stored / "+Number(100*in.DiskPart)+"% of "+Bytes(in.DiskBytes)+", rounded up; nothing is spare"),
	}
	out = append(out, r.brokerFigures(in)...)
	out = append(out,
		bytesFigure("peak ingress", r.PeakIngress, "/s", "peak records a second x bytes"+given(in.WirePart > 0, " x protocol")),
		bytesFigure("peak replication", r.PeakReplication, "/s", "peak ingress x (replicas - 1)"+given(in.MovePart > 0, " x moves")),
		bytesFigure("peak consumer egress", r.PeakEgress, "/s", "peak ingress x "+Number(in.Groups)+" groups"),
		bytesFigure("peak sent", r.PeakSent, "/s", "replication + consumer egress"),
		bytesFigure("peak sent by one broker", r.BrokerSent, "/s", "by "+Number(r.Start)+" brokers, leaders spread evenly; compare with `strandline bench` on your machines"))
	if in.Zones > 1 {
		out = append(out, bytesFigure("the same, a zone lost", r.BrokerSentZoneLost, "/s", "the brokers of the other zones send all"))
	}
	hot := "if all get the same"
	if in.HotPart > 0 {
		hot = Number(100*in.HotPart) + "% of everything"
	}
	out = append(out,
		bytesFigure("peak of the busiest partition", r.HotIngress, "/s", hot+"; one leader takes it"),
		bytesFigure("size of the busiest partition", r.HotBytes, "", "one replica, on one broker's disk"),
		counted("owners in a group", r.Owners, "owners", "at most one a partition"))
	out = append(out, r.backlogFigures(in)...)
	if r.Cost > 0 {
		out = append(out, Figure{"a month", r.Cost, "price", grouped(r.Cost, 2), "disks, brokers and traffic at the prices given"})
	}
	return out
}

// brokerFigures are the counts beyond the floor, where something asks for more.
func (r Result) brokerFigures(in Inputs) []Figure {
	var out []Figure
	if in.SendBytes > 0 {
		out = append(out, counted("brokers to send it", r.SendFloor, "brokers",
			"peak sent / "+Bytes(in.SendBytes)+"/s, rounded up"+given(in.Zones > 1, ", one zone lost")))
	}
	if in.Zones > 1 {
		out = append(out, counted("brokers, even in "+Number(in.Zones)+" zones", r.Even, "brokers", "the larger floor, the same number in each zone"))
	}
	if in.Zones > 1 || in.Spare > 0 {
		out = append(out, counted("brokers to start with", r.Start, "brokers",
			Number(max(in.Spare, 1))+" spare"+given(in.Zones > 1, " in each zone")+": who is lost can be copied again"))
	}
	return append(out, counted("replicas on a broker", r.BrokerReplicas, "replicas", "partitions x replicas, by "+Number(r.Start)+" brokers"))
}

func (r Result) backlogFigures(in Inputs) []Figure {
	from := Number(in.BacklogIn) + " in - " + Number(in.BacklogOut) + " out"
	return []Figure{
		counted("backlog", r.BacklogHour, "records/hour", "of one slow group: "+from+", x 3,600 s"),
		bytesFigure("backlog bytes", r.BacklogHourBytes, "/hour", "backlog x bytes"),
		timeFigure("time to loss", r.TimeToLoss, "retention x in / (in - out), less the "+Time(in.BacklogTime)+" it has been so"),
		timeFigure("time to catch up", r.CatchUp, "backlog of "+Time(in.BacklogTime)+", worked off at "+Number(in.CatchUpOut)+" a second while "+Number(in.BacklogIn)+" come"),
	}
}

// given is text if it applies.
func given(applies bool, text string) string {
	if applies {
		return text
	}
	return ""
}

func bytesFigure(name string, value float64, per, from string) Figure {
	return Figure{name, value, "B" + per, Bytes(value) + per, from}
}

func counted(name string, value float64, unit, from string) Figure {
	return Figure{name, value, unit, Number(value) + " " + unit, from}
}

func timeFigure(name string, value time.Duration, from string) Figure {
	if value == Never {
		return Figure{name, -1, "s", "never", from}
	}
	return Figure{name, value.Seconds(), "s", Time(value), from}
}

// Tenfold is the same workload at ten times its rates: what it stores, and the floor of brokers (R168).
func Tenfold(in Inputs) (Figure, error) {
	in.Growth *= 10
	r, err := Compute(in)
	if err != nil {
		return Figure{}, err
	}
	return Figure{"ten times the rates", r.StoredBytes, "B", fmt.Sprintf("%s, %s brokers", Bytes(r.StoredBytes), Number(r.Floor)), "stored, and the floor"}, nil
}
