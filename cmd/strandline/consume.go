package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/internal/group"
)

// consumeFlags are the flags of `consume`.
type consumeFlags struct {
	position   group.Position
	partitions []int32
	count      int64
	exitAtEnd  bool
	group      string
	format     string
	json       bool
}

const consumeLong = `Consume a topic and print its records, by default one value a line from now on, until interrupted. Without -g no
position is saved. With -g the command is a member of that group: it reads the partitions that the group gives it, from where the
group has committed (-o counts only where it has not), and commits what it has printed.

Where to start (-o), in each partition:
  start, end        the first record, the next record to come
  -N, +N            N records before the end, N records after the start
  OFFSET            exactly there; an offset outside the log is refused, never moved silently
  @TIME             the first record not older: @2026-01-31, @2026-01-31T15:04:05Z, @1767225600000, @-15m
(-o json and -o text choose the output, as everywhere else.)

` + formatHelp

func newConsumeCommand(a *app) *cobra.Command {
	f := consumeFlags{position: group.Position{Kind: group.PositionEnd}}
	cmd := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "Consume a topic and print its records",
		Long:  consumeLong,
		Example: `  strandline consume orders -o start -e
  strandline consume orders -o -10 -p 3 -f '%p:%o %d %k=%v\n'
  strandline consume orders -o @-15m -n 100 --json
  strandline consume orders -o start -e --json | strandline produce orders-copy --json
  strandline consume orders -g billing -o start`,
		Args: exactArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.json && cmd.Flags().Changed("format") {
				return usagef("--json and -f exclude each other")
			}
			if f.group == "" && cmd.Flags().Changed("group") {
				return usagef("--group: an empty name")
			}
			return a.consume(cmd, args[0], f)
		},
		ValidArgsFunction: a.completeTopics,
	}
	fl := cmd.Flags()
	// This --output hides the global one, whose letter -o means the position here.
	fl.StringVar(&a.given.output, "output", "", "`text|json`: json is the same as --json")
	fl.VarP(positionFlag{&f.position, &a.given.output, time.Now}, "offset", "o", "where to start: start, end (the default), -N, +N, OFFSET, @TIME")
	fl.Int32SliceVarP(&f.partitions, "partitions", "p", nil, "only these partitions, `N,...` (default all)")
	fl.Int64VarP(&f.count, "num", "n", 0, "end after `N` records (0: no limit)")
	fl.BoolVarP(&f.exitAtEnd, "exit-at-end", "e", false, "end at what was the end of each partition at the start")
	fl.StringVarP(&f.group, "group", "g", "", "consume as a member of this `GROUP`")
	fl.StringVarP(&f.format, "format", "f", formatDefault, "`FORMAT` in which a record is printed")
	fl.BoolVar(&f.json, "json", false, "print one JSON object a line, from which produce --json restores every byte")
	return cmd
}

func (a *app) consume(cmd *cobra.Command, topic string, f consumeFlags) error {
	formatter, err := newFormatter(f.format)
	if err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	set, err := a.settings()
	if err != nil {
		return err
	}
	render := formatter.AppendPartitionRecord
	if f.json || set.json {
		render = func(dst []byte, _ *kgo.FetchPartition, r *kgo.Record) []byte {
			return append(appendRecordJSON(dst, r), '\n')
		}
	}
	if f.group != "" {
		return a.consumeGroup(cmd, topic, f, render)
	}
	s, err := a.connect(
		kgo.ConsumeResetOffset(kgo.NoResetOffset()), // never jump silently over lost records
		kgo.KeepControlRecords(),                    // they move the position, and are not printed
		kgo.FetchMaxWait(500*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer s.close()
	extents, err := s.extents(cmd.Context(), topic, f)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(a.stdout, 64<<10)
	c := &consumption{session: s, topic: topic, out: out, left: f.count, limited: f.count > 0, render: render}
	c.assign(extents, f.exitAtEnd)
	err = c.run(cmd.Context())
	if flushErr := out.Flush(); err == nil && flushErr != nil && !isClosedPipe(flushErr) {
		err = flushErr
	}
	return err
}

// extent is one partition to consume: from is where to start, [start, end) what the log held when the command began.
type extent struct {
	partition        int32
	start, end, from int64
}

// extents resolves the wanted position in every wanted partition.
func (s *session) extents(ctx context.Context, topic string, f consumeFlags) ([]extent, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	count, err := s.partitionCount(ctx, topic)
	if err != nil {
		return nil, s.explain(err, "cannot consume %s", topic)
	}
	partitions := slices.Compact(slices.Sorted(slices.Values(f.partitions)))
	if len(partitions) == 0 {
		for p := range count {
			partitions = append(partitions, p)
		}
	}
	if first, last := partitions[0], partitions[len(partitions)-1]; first < 0 || last >= count {
		return nil, &failure{what: fmt.Sprintf("topic %s has no partition %d", topic, max(last, -first)), todo: fmt.Sprintf("give 0 to %d", count-1)}
	}
	starts, err := s.admin.ListStartOffsets(ctx, topic)
	if err != nil {
		return nil, s.explain(err, "cannot read the offsets of %s", topic)
	}
	ends, err := s.admin.ListEndOffsets(ctx, topic)
	if err != nil {
		return nil, s.explain(err, "cannot read the offsets of %s", topic)
	}
	var times kadm.ListedOffsets
	if f.position.Kind == group.PositionTime {
		if times, err = s.admin.ListOffsetsAfterMilli(ctx, f.position.N, topic); err != nil {
			return nil, s.explain(err, "cannot look up that time in %s", topic)
		}
	}
	extents := make([]extent, 0, len(partitions))
	for _, p := range partitions {
		e, err := resolveExtent(topic, p, f.position, offsetLists{starts, ends, times})
		if err != nil {
			return nil, err
		}
		extents = append(extents, e)
	}
	return extents, nil
}

// offsetLists are the answers of the brokers about a topic's offsets; times is nil unless a time was asked for.
type offsetLists struct{ starts, ends, times kadm.ListedOffsets }

// extent is what a partition holds; from is the first offset of the time, if one was asked for.
func (l offsetLists) extent(topic string, partition int32) (extent, error) {
	e := extent{partition: partition}
	for _, x := range []struct {
		listed kadm.ListedOffsets
		into   *int64
	}{{l.starts, &e.start}, {l.ends, &e.end}, {l.times, &e.from}} {
		if x.listed == nil {
			continue
		}
		o, ok := x.listed.Lookup(topic, partition)
		if !ok {
			return e, &failure{what: fmt.Sprintf("the broker does not tell the offsets of partition %d of %s", partition, topic)}
		}
		if o.Err != nil {
			return e, failf(o.Err, "cannot read the offsets of partition %d of %s", partition, topic)
		}
		*x.into = o.Offset
	}
	if e.from < 0 { // no record is that young
		e.from = e.end
	}
	return e, nil
}

func resolveExtent(topic string, partition int32, pos group.Position, l offsetLists) (extent, error) {
	e, err := l.extent(topic, partition)
	if err != nil || pos.Kind == group.PositionTime {
		return e, err
	}
	e.from = pos.In(e.start, e.end)
	if e.from < e.start || e.from > e.end {
		return e, &failure{
			what: fmt.Sprintf("offset %d is outside partition %d of %s, which holds %d up to %d", e.from, partition, topic, e.start, e.end),
			todo: "give -o start, -o end, or an offset in that range",
		}
	}
	return e, nil
}
