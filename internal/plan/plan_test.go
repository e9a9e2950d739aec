package plan

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// newTestResult computes what change makes of the reference workload.
func newTestResult(t *testing.T, change func(*Inputs)) (Inputs, Result) {
	t.Helper()
	in := Reference()
	change(&in)
	r, err := Compute(in)
	if err != nil {
		t.Fatal(err)
	}
	return in, r
}

// TestR160_R168_ReferenceEstimate: each figure of the requirements, from their inputs.
func TestR160_R168_ReferenceEstimate(t *testing.T) {
	in, r := newTestResult(t, func(*Inputs) {})
	want := map[string]string{
		"ingress": "3.072 MB/s", "a day": "265 GB/day", "retained": "3.716 TB", "stored": "11.15 TB", "broker floor": "16 brokers",
		"peak ingress": "10.24 MB/s", "peak replication": "20.48 MB/s", "peak consumer egress": "20.48 MB/s", "peak sent": "40.96 MB/s",
		"owners in a group": "64 owners", "backlog": "360,000 records/hour", "backlog bytes": "368.6 MB/hour",
		"time to catch up": "1h", "time to loss": "42 days",
	}
	for _, f := range r.Figures(in) {
		if text, ok := want[f.Name]; ok && f.Text != text {
			t.Errorf("%s: %s, want %s", f.Name, f.Text, text)
		}
		if delete(want, f.Name); f.From == "" {
			t.Errorf("%s does not say where it comes from", f.Name)
		}
		if f.Name == "brokers to start with" {
			t.Error("more than the floor is advised without zones")
		}
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
	if tenfold, err := Tenfold(in); err != nil || tenfold.Text != "111.5 TB, 160 brokers" {
		t.Error(tenfold, err)
	}
	if notes := r.Notes(in); len(notes) > 0 || r.Cost != 0 {
		t.Error(notes, r.Cost)
	}
}

// TestR164_ZonesGiveMoreThanTheFloor: only zones, a network that is too slow, or a wish for spare brokers make it more than the floor.
func TestR164_ZonesGiveMoreThanTheFloor(t *testing.T) {
	_, r := newTestResult(t, func(in *Inputs) { in.Zones = 3 })
	if r.Floor != 16 || r.Even != 18 || r.Start != 21 || math.Abs(r.BrokerSentZoneLost/r.BrokerSent-1.5) > 1e-9 {
		t.Errorf("%+v", r)
	}
	if _, r = newTestResult(t, func(in *Inputs) { in.Spare = 2 }); r.Floor != 16 || r.Even != 0 || r.Start != 18 {
		t.Errorf("%+v", r)
	}
	if _, r = newTestResult(t, func(in *Inputs) { in.Zones, in.Spare = 4, 2 }); r.Even != 16 || r.Start != 24 {
		t.Errorf("%+v", r)
	}
	// 40.96 MB/s, by two of three zones: 61.44 MB/s of 2 MB/s each.
	in, r := newTestResult(t, func(in *Inputs) { in.Zones, in.SendBytes = 3, 2e6 })
	if r.SendFloor != 31 || r.Even != 33 || r.Start != 36 || r.BrokerSentZoneLost > in.SendBytes {
		t.Errorf("%+v", r)
	}
	if _, r = newTestResult(t, func(in *Inputs) { in.Rate = 1 }); r.Floor != 3 {
		t.Errorf("fewer brokers than replicas: %v", r.Floor)
	}
}

// TestR169_R170_MeasuredInputs: what is left out by default is added as measured.
func TestR169_R170_MeasuredInputs(t *testing.T) {
	_, base := newTestResult(t, func(*Inputs) {})
	for _, c := range []struct {
		name   string
		change func(*Inputs)
		of     func(Result) float64
		factor float64
	}{
		{"compression", func(in *Inputs) { in.Compression = 0.25 }, func(r Result) float64 { return r.StoredBytes }, 0.25},
		{"compression on the wire", func(in *Inputs) { in.Compression = 0.25 }, func(r Result) float64 { return r.PeakSent }, 0.25},
		{"compression of a backlog", func(in *Inputs) { in.Compression = 0.25 }, func(r Result) float64 { return r.BacklogHourBytes }, 0.25},
		{"indexes", func(in *Inputs) { in.IndexPart = 0.02 }, func(r Result) float64 { return r.StoredBytes }, 1.02},
		{"protocol", func(in *Inputs) { in.WirePart = 0.1 }, func(r Result) float64 { return r.PeakSent }, 1.1},
		{"protocol is not stored", func(in *Inputs) { in.WirePart = 0.1 }, func(r Result) float64 { return r.StoredBytes }, 1},
		{"moves", func(in *Inputs) { in.MovePart = 0.5 }, func(r Result) float64 { return r.PeakReplication }, 1.5},
		{"growth", func(in *Inputs) { in.Growth = 2 }, func(r Result) float64 { return r.PeakIngress }, 2},
		{"growth of what is stored", func(in *Inputs) { in.Growth = 2 }, func(r Result) float64 { return r.StoredBytes }, 2},
		{"a hot partition", func(in *Inputs) { in.HotPart = 0.5 }, func(r Result) float64 { return r.HotBytes }, 32},
		{"groups", func(in *Inputs) { in.Groups = 5 }, func(r Result) float64 { return r.PeakEgress }, 2.5},
	} {
		_, r := newTestResult(t, c.change)
		if got := c.of(r) / c.of(base); math.Abs(got-c.factor) > 1e-9 {
			t.Errorf("%s: %v, want %v", c.name, got, c.factor)
		}
	}
}

// TestR170_Prices: disks as they are bought, brokers, traffic between zones and to consumers.
func TestR170_Prices(t *testing.T) {
	gb := 3.072e6 * 30 * 86400 / 1e9
	for _, c := range []struct {
		change func(*Inputs)
		want   float64
	}{
		{func(in *Inputs) { in.DiskPrice, in.BrokerPrice = 10, 100 }, 16*10 + 16*100},
		{func(in *Inputs) { in.ZonePrice = 1 }, 0}, // no zones
		{func(in *Inputs) { in.ZonePrice, in.Zones = 1, 3 }, gb * (2 + 3*2.0/3)},
		{func(in *Inputs) { in.ZonePrice, in.Zones = 1, 2 }, gb * (4.0/3 + 3*1.0/2)},
		{func(in *Inputs) { in.EgressPrice = 1 }, gb * 2},
	} {
		if _, r := newTestResult(t, c.change); math.Abs(r.Cost-c.want) > 1e-6 {
			t.Errorf("%v, want %v", r.Cost, c.want)
		}
	}
	for _, c := range []struct{ replicas, zones, want float64 }{{3, 1, 0}, {3, 3, 2}, {3, 5, 2}, {4, 2, 2}, {1, 3, 0}} {
		if got := copiesOutside(c.replicas, c.zones); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// TestR167_Backlog: a group that keeps up loses nothing, one that does not loses at a known time, and one that never catches up says so.
func TestR167_Backlog(t *testing.T) {
	for _, c := range []struct {
		in, out, after float64
		behind         time.Duration
		loss, catchUp  time.Duration
	}{
		{300, 300, 400, time.Hour, Never, 0},
		{300, 400, 400, time.Hour, Never, 0},
		{300, 0, 300, time.Hour, 14*day - time.Hour, Never},
		{300, 200, 350, 2 * time.Hour, 42*day - 2*time.Hour, 4 * time.Hour},
		{300, 0, 600, 20 * day, 0, 20 * day}, // lost already
	} {
		_, r := newTestResult(t, func(in *Inputs) {
			in.BacklogIn, in.BacklogOut, in.CatchUpOut, in.BacklogTime = c.in, c.out, c.after, c.behind
		})
		if r.TimeToLoss != c.loss || r.CatchUp != c.catchUp {
			t.Errorf("%+v: loss %v, catching up %v", c, r.TimeToLoss, r.CatchUp)
		}
	}
}

// TestR172_LeversSayTheirLimit: each of the four, with the figures of the workload.
func TestR172_LeversSayTheirLimit(t *testing.T) {
	in, r := newTestResult(t, func(in *Inputs) { in.HotPart = 0.25 })
	want := map[string]string{
		"more producers": "2.560 MB/s", "more consumers": "members beyond 64 are idle", "more brokers": "929.0 GB", "more partitions": "cannot be taken away",
	}
	for _, l := range r.Levers(in) {
		if !strings.Contains(l.Limit, want[l.Change]) || l.Moves == "" {
			t.Errorf("%+v", l)
		}
		delete(want, l.Change)
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
}

// TestR186_Notes: what an estimate shows to be wrong is said, and nothing else.
func TestR186_Notes(t *testing.T) {
	for _, c := range []struct {
		change func(*Inputs)
		want   string
	}{
		{func(in *Inputs) { in.Partitions = 3400 }, ""},
		{func(in *Inputs) { in.Partitions = 3500 }, "over-partitioned: a partition holds 1.062 GB"},
		{func(in *Inputs) { in.Rate, in.Partitions = 1, 1 }, ""}, // there can be no fewer
		{func(in *Inputs) { in.HotPart = 0.03 }, ""},
		{func(in *Inputs) { in.HotPart = 0.04 }, "2.56 times its share"},
		{func(in *Inputs) { in.Partitions = 5 }, "does not fit on one broker: 743.2 GB of 700.0 GB"},
		{func(in *Inputs) { in.Peak = 1 }, "peak is below the average"},
		{func(in *Inputs) { in.Zones = 4 }, "not in every zone"},
		{func(in *Inputs) { in.BacklogTime = 50 * day }, "loses records already"},
		{func(in *Inputs) { in.CatchUpOut = 300 }, "never catches up"},
	} {
		in, r := newTestResult(t, c.change)
		notes := r.Notes(in)
		if c.want == "" && len(notes) > 0 || c.want != "" && !slices.ContainsFunc(notes, func(n string) bool { return strings.Contains(n, c.want) }) {
			t.Errorf("%v, want %q", notes, c.want)
		}
	}
}

func TestCompute_RefusesByName(t *testing.T) {
	for want, change := range map[string]func(*Inputs){
		"rate": func(in *Inputs) { in.Rate = -1 }, "size": func(in *Inputs) { in.RecordBytes = 0 }, "fill": func(in *Inputs) { in.DiskPart = 1.5 },
		"replicas": func(in *Inputs) { in.Replicas = 0 }, "compression": func(in *Inputs) { in.Compression = math.NaN() },
		"retention": func(in *Inputs) { in.Retention = 0 }, "partitions is 1.5, want a whole": func(in *Inputs) { in.Partitions = 1.5 },
	} {
		in := Reference()
		change(&in)
		if _, err := Compute(in); !errors.Is(err, ErrInputs) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestR169_DecimalUnits: text to numbers and back.
func TestR169_DecimalUnits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0 B", 999: "999 B", 1024: "1.024 kB", 999_960: "1.000 MB", 3_072_000: "3.072 MB", 11.1476736e12: "11.15 TB", 1e21: "1000 EB", -2000: "-2.000 kB", 0.5: "0.500 B",
	} {
		if got := Bytes(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	for text, want := range map[string]float64{"1TB": 1e12, "700 gb": 7e11, "1024": 1024, "1.5kB": 1500, "12B": 12} {
		if got, err := ParseBytes(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]time.Duration{"14d": 14 * day, "1.5d": 36 * time.Hour, "90m": 90 * time.Minute} {
		if got, err := ParseTime(text); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "x", "-1", "NaN", "1GiB", "-1d", "-1h", "NaNd", "1e300d"} {
		_, notBytes := ParseBytes(text)
		_, notTime := ParseTime(text)
		if notBytes == nil || notTime == nil {
			t.Errorf("%q was taken", text)
		}
	}
	for d, want := range map[time.Duration]string{14 * day: "14 days", time.Hour: "1h", 90 * time.Minute: "1h30m", 0: "0s", 61 * time.Second: "1m1s"} {
		if got := Time(d); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	if Number(360000) != "360,000" || Number(-1234.5) != "-1,234.5" || Number(0) != "0" || Number(100) != "100" {
		t.Error(Number(360000), Number(-1234.5), Number(0), Number(100))
	}
}
