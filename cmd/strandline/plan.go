package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline.dev/internal/plan"
)

const planLong = `Estimate what a workload needs: bytes stored, brokers, traffic at the peak, owners in a group, and when a group that is too slow loses
records. Without flags it is the reference estimate, whose broker floor is 16. Units are decimal. Compression, indexes, protocol overhead, moves,
spare brokers and prices are left out until you give them as measured.

No broker has a capacity that holds everywhere: measure it with "strandline bench" on the machines you mean, and compare it with what one
broker sends here.

With --from-cluster, rates, bytes of a record as stored (so after compression, with batch headers), retention, replicas, partitions, zones, disks and
the busiest partition are read from the brokers, over --window; a flag that is given wins. The peak is the measured rate unless --peak is
given. How often a record is read is measured with --http, from the metrics of that node; else it is the number of consumer groups.`

const planExample = `  strandline plan
  strandline plan --rate 20000 --peak 60000 --size 400 --retention 7d --zones 3 --disk 2TB
  strandline plan --compression 0.3 --index-overhead 0.002 --protocol-overhead 0.02 --zones 3 --zone-price 0.01 --disk-price 45
  strandline plan --from-cluster --window 30s --growth 3
  strandline plan -o json | jq '.figures[] | {name, value, unit}'`

// planFlags are the flags of `plan`.
type planFlags struct {
	in          plan.Inputs
	fromCluster bool
	window      time.Duration
}

func newPlanCommand(a *app) *cobra.Command {
	f := planFlags{in: plan.Reference()}
	cmd := &cobra.Command{
		Use: "plan", Short: "Estimate disks, brokers, traffic and time to loss of a workload", Long: planLong, Example: planExample,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.plan(cmd.Context(), f, cmd.Flags().Changed) },
	}
	f.add(cmd.Flags())
	return cmd
}

// add makes a flag of each input.
func (f *planFlags) add(flags *pflag.FlagSet) {
	in := &f.in
	number := func(at *float64, name, usage string) { flags.Float64Var(at, name, *at, usage) }
	number(&in.Rate, "rate", "records a second published, `N` on average")
	number(&in.Peak, "peak", "records a second published, `N` at the peak")
	flags.Var((*bytesValue)(&in.RecordBytes), "size", "`BYTES` of one record before compression")
	flags.Var((*daysValue)(&in.Retention), "retention", "`DURATION` that records are kept: 14d, 36h")
	number(&in.Replicas, "replicas", "`N` replicas of each partition")
	number(&in.Groups, "groups", "`N` consumer groups that read everything")
	number(&in.Partitions, "partitions", "`N` partitions of all topics together")
	number(&in.Growth, "growth", "`FACTOR` on both rates")
	number(&in.HotPart, "hot-share", "`PART` of everything that goes to the busiest partition, 0 to 1 (0: all get the same)")

	flags.Var((*bytesValue)(&in.DiskBytes), "disk", "`BYTES` of one broker's disk: 1TB, 700GB")
	number(&in.DiskPart, "fill", "`PART` of a disk that may be filled")
	number(&in.Zones, "zones", "`N` zones (1: they play no part)")
	number(&in.Spare, "spare", "`N` brokers more than needed, in each zone, at least 1 where there are zones")
	flags.Var((*bytesValue)(&in.SendBytes), "send", "`BYTES` a second that one broker may send, as measured (0: not looked at)")

	number(&in.Compression, "compression", "`FACTOR` by which compression makes records smaller, as measured: 0.3")
	number(&in.IndexPart, "index-overhead", "`PART` of bytes stored beside the records, as measured")
	number(&in.WirePart, "protocol-overhead", "`PART` of bytes sent beside the records, as measured")
	number(&in.MovePart, "move-traffic", "`PART` of replication that moves and catching up add")

	number(&in.BacklogIn, "backlog-in", "records a second, `N`, that come to a group that is too slow")
	number(&in.BacklogOut, "backlog-out", "records a second, `N`, that it works off")
	flags.Var((*daysValue)(&in.BacklogTime), "backlog-for", "`DURATION` that it has been too slow")
	number(&in.CatchUpOut, "catch-up", "records a second, `N`, that it works off afterwards")

	number(&in.DiskPrice, "disk-price", "`PRICE` of one TB of disk a month")
	number(&in.BrokerPrice, "broker-price", "`PRICE` of one broker a month, without its disk")
	number(&in.ZonePrice, "zone-price", "`PRICE` of one GB between zones")
	number(&in.EgressPrice, "egress-price", "`PRICE` of one GB sent to consumers")

	flags.BoolVar(&f.fromCluster, "from-cluster", false, "read rates, sizes and skew from the brokers")
	flags.DurationVar(&f.window, "window", planWindow, "how long --from-cluster looks")
}

// bytesValue is a flag that takes decimal units.
type bytesValue float64

func (v *bytesValue) Set(text string) error {
	n, err := plan.ParseBytes(text)
	*v = bytesValue(n)
	return err
}

func (v *bytesValue) String() string { return fmt.Sprint(float64(*v)) }

// Type is what pflag calls such a value.
func (v *bytesValue) Type() string { return "bytes" }

// daysValue is a flag that takes a time in days, too.
type daysValue time.Duration

func (v *daysValue) Set(text string) error {
	d, err := plan.ParseTime(text)
	*v = daysValue(d)
	return err
}

func (v *daysValue) String() string { return time.Duration(*v).String() }

// Type is what pflag calls such a value.
func (v *daysValue) Type() string { return "time" }

// estimated is `plan -o json`.
type estimated struct {
	Inputs   estimatedInputs `json:"inputs"`
	Measured *measuredLoad   `json:"measured,omitempty"` // with --from-cluster
	Figures  []plan.Figure   `json:"figures"`
	Tenfold  *plan.Figure    `json:"tenfold,omitempty"`
	Levers   []plan.Lever    `json:"levers"`
	Notes    []string        `json:"notes"`
}

type estimatedInputs struct {
	plan.Inputs
	RetentionSeconds float64 `json:"retentionSeconds"`
	BacklogSeconds   float64 `json:"backlogForSeconds"`
}

// plan makes the estimate; given says which flags a person typed.
func (a *app) plan(ctx context.Context, f planFlags, given func(string) bool) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	if f.window <= 0 || f.window > planWindowMax {
		return usagef("--window %v: want more than 0 and at most %v", f.window, planWindowMax)
	}
	var load *measuredLoad
	if f.fromCluster {
		if load, err = a.measureLoad(ctx, s, f.window); err != nil {
			return err
		}
		load.fill(&f.in, given)
		if f.in.Rate == 0 {
			return &failure{what: "cannot plan from the cluster", why: fmt.Errorf("no record was published within %v", f.window),
				todo: "give a longer --window, or a --rate"}
		}
	}
	result, err := plan.Compute(f.in)
	if err != nil {
		return usageError{err}
	}
	out := estimated{
		Inputs:   estimatedInputs{f.in, f.in.Retention.Seconds(), f.in.BacklogTime.Seconds()},
		Measured: load, Figures: result.Figures(f.in), Levers: result.Levers(f.in), Notes: append([]string{}, result.Notes(f.in)...),
	}
	if load != nil {
		out.Notes = append(load.notes(f.in, given), out.Notes...)
	}
	if tenfold, err := plan.Tenfold(f.in); err == nil { // else ten times as much is beyond what can be planned
		out.Tenfold = &tenfold
	}
	p := a.printer(s)
	if p.json {
		return p.object(out)
	}
	return p.printEstimate(out)
}

func (p printer) printEstimate(out estimated) error {
	if out.Measured != nil {
		if err := p.printLoad(out.Measured); err != nil {
			return err
		}
	}
	in := out.Inputs
	_, err := fmt.Fprintf(p.w, "%s records a second of %s, %s at the peak, growth %s; kept %s; %s replicas, %s partitions, %s groups\n\n",
		plan.Number(in.Rate), plan.Bytes(in.RecordBytes), plan.Number(in.Peak), plan.Number(in.Growth), plan.Time(in.Retention),
		plan.Number(in.Replicas), plan.Number(in.Partitions), plan.Number(in.Groups))
	if err != nil {
		return err
	}
	var rows [][]string
	for _, f := range out.Figures {
		rows = append(rows, []string{f.Name, f.Text, f.From})
	}
	if f := out.Tenfold; f != nil {
		rows = append(rows, []string{f.Name, f.Text, f.From})
	}
	if err := p.table([]string{"FIGURE", "VALUE", "FROM"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(p.w)
	for _, l := range out.Levers {
		fmt.Fprintf(p.w, "%s\n  moves: %s\n  limit: %s\n", l.Change, l.Moves, l.Limit)
	}
	if len(out.Notes) > 0 {
		fmt.Fprintln(p.w)
	}
	for _, n := range out.Notes {
		if _, err := fmt.Fprintf(p.w, "note: %s\n", n); err != nil {
			return err
		}
	}
	return nil
}
