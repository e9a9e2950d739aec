package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/wire"
)

// What `partition elect --recover` adds to Kafka's request (docs/formats/recovery.md).
const (
	recoverTag   = 10001
	recoverShow  = 1
	recoverElect = 2
	recoverWhole = 3
)

// electFlags are the flags of `partition elect`.
type electFlags struct {
	partitions   []string
	recover, all bool
	dryRun       bool
}

func newPartitionElectCommand(a *app) *cobra.Command {
	var f electFlags
	cmd := &cobra.Command{
		Use:   "elect [TOPIC]",
		Short: "Give leaderships back to preferred leaders, or recover partitions that have lost every candidate",
		Long: `Without --recover, give partitions their preferred leaders, where those are up and in sync; without TOPIC, everywhere.

With --recover, for partitions without a leader and without a replica that is sure to have every acknowledged record: show what each replica holds
(the epoch of its last record, and the offset after it), ask, and elect the one that has most of those that are up. Records that only others
had are lost. --all does so for every such partition, but only for those of which every replica that was last known to have all acknowledged
records is back. --dry-run only shows.`,
		Example: `  strandline partition elect
  strandline partition elect orders -p 0 -p 1
  strandline partition elect orders -p 0 --recover --dry-run
  strandline partition elect --recover --all -y`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.partitionElect(cmd.Context(), args, f) },

		ValidArgsFunction: a.completeTopics,
	}
	cmd.Flags().StringSliceVarP(&f.partitions, "partition", "p", nil, "the partitions of TOPIC; none means all")
	cmd.Flags().BoolVar(&f.recover, "recover", false, "elect a leader that may miss acknowledged records")
	cmd.Flags().BoolVar(&f.all, "all", false, "with --recover: every partition that has lost all candidates, once all who were in sync last are back")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "with --recover: only show what the replicas hold")
	return cmd
}

// elected is one line of `partition elect -o json`.
type elected struct {
	Topic     string       `json:"topic"`
	Partition int32        `json:"partition"`
	Leader    *int32       `json:"leader,omitempty"`
	Replicas  []replicaEnd `json:"replicas,omitempty"`
	Done      bool         `json:"done"`
	Error     string       `json:"error,omitempty"`
}

// replicaEnd is what one replica holds.
type replicaEnd struct {
	Node      int32 `json:"node"`
	LastEpoch int32 `json:"lastEpoch"`
	End       int64 `json:"end"`
}

func (a *app) partitionElect(ctx context.Context, topics []string, f electFlags) error {
	switch {
	case len(topics) > 1:
		return usagef("name one topic, or none for all")
	case len(topics) == 0 && len(f.partitions) > 0:
		return usagef("-p needs a TOPIC")
	case !f.recover && (f.all || f.dryRun):
		return usagef("--all and --dry-run go with --recover")
	case f.recover && f.all == (len(topics) == 1):
		return usagef("with --recover, name a TOPIC or give --all")
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	req, err := s.electRequest(ctx, topics, f)
	if err != nil {
		return err
	}
	p := a.printer(s.settings)
	if !f.recover {
		results, err := s.elect(ctx, req)
		if err != nil {
			return s.explain(err, "no leader was elected")
		}
		return p.printElected(results, false)
	}
	req.ElectionType = 1
	req.UnknownTags.Set(recoverTag, []byte{recoverShow})
	shown, err := s.elect(ctx, req)
	if err != nil {
		return s.explain(err, "cannot see what the replicas hold")
	}
	lost := slices.DeleteFunc(shown, func(e elected) bool { return !e.Done })
	if f.dryRun || len(lost) == 0 {
		return p.printElected(lost, true)
	}
	if isInteractive(a.stdin) && !s.yes && !p.json {
		if err := p.printElected(lost, true); err != nil {
			return err
		}
	}
	if err := a.confirm(s.settings, fmt.Sprintf("Elect whoever has most for %d partition(s)? Acknowledged records that only others had are lost.", len(lost))); err != nil {
		return err
	}
	mode := byte(recoverElect)
	if f.all {
		mode = recoverWhole
	}
	req.UnknownTags.Set(recoverTag, []byte{mode})
	results, err := s.elect(ctx, req)
	if err != nil {
		return s.explain(err, "no leader was elected")
	}
	return p.printElected(results, true)
}

// electRequest names the partitions; a topic without -p means all of it.
func (s *session) electRequest(ctx context.Context, topics []string, f electFlags) (*kmsg.ElectLeadersRequest, error) {
	numbers, err := partitionNumbers(f.partitions)
	if err != nil {
		return nil, err
	}
	req := kmsg.NewPtrElectLeadersRequest()
	req.TimeoutMillis = s.serverMillis()
	if len(topics) == 0 {
		return req, nil
	}
	if len(numbers) == 0 {
		ctx, cancel := s.bounded(ctx)
		defer cancel()
		details, err := s.admin.ListTopicsWithInternal(ctx, topics[0])
		if err == nil {
			err = details[topics[0]].Err
		}
		if err != nil {
			return nil, s.explain(err, "cannot see %s", topics[0])
		}
		for _, p := range details[topics[0]].Partitions.Sorted() {
			numbers = append(numbers, p.Partition)
		}
	}
	t := kmsg.NewElectLeadersRequestTopic()
	t.Topic, t.Partitions = topics[0], numbers
	req.Topics = append(req.Topics, t)
	return req, nil
}

// elect sends the request and reads the answer with its tags.
func (s *session) elect(ctx context.Context, req *kmsg.ElectLeadersRequest) ([]elected, error) {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	resp, err := req.RequestWith(ctx, s.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return nil, err
	}
	var out []elected
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			e := elected{Topic: t.Topic, Partition: p.Partition, Done: p.ErrorCode == 0}
			if err := answered(kerr.ErrorForCode(p.ErrorCode), textOf(p.ErrorMessage)); err != nil {
				e.Error = reason(err)
			}
			p.UnknownTags.Each(func(tag uint32, v []byte) {
				if tag == recoverTag {
					e.told(v)
				}
			})
			out = append(out, e)
		}
	}
	return out, nil
}

// told reads what the answer's tag says.
func (e *elected) told(v []byte) {
	d := wire.NewDecoder(v)
	d.ExpectHeader(recoverTag, 0)
	leader := d.Int32()
	ends := wire.ReadArray(d, 16, func(d *wire.Decoder) replicaEnd {
		return replicaEnd{Node: d.Int32(), LastEpoch: d.Int32(), End: d.Int64()}
	})
	d.Tags(nil)
	if d.Done() == nil {
		e.Leader, e.Replicas = &leader, ends
	}
}

func (p printer) printElected(results []elected, recovering bool) error {
	failed := false
	var rows [][]string
	for _, e := range results {
		// A preferred leader that leads already is no failure.
		failed = failed || !e.Done && !strings.HasPrefix(e.Error, kerr.ElectionNotNeeded.Message)
		if p.json {
			if err := p.object(e); err != nil {
				return err
			}
			continue
		}
		state := "elected"
		switch {
		case e.Error != "":
			state = e.Error
		case e.Leader != nil && *e.Leader < 0:
			state = "no leader"
		case e.Leader != nil:
			state = fmt.Sprintf("node %d leads", *e.Leader)
		}
		rows = append(rows, []string{fmt.Sprintf("%s-%d", e.Topic, e.Partition), state, endsText(e.Replicas)})
	}
	if len(results) == 0 && !p.json {
		fmt.Fprintln(p.w, "nothing to do")
	}
	heading := []string{"PARTITION", "RESULT", ""}
	if recovering {
		heading[2] = "REPLICAS (NODE: LAST EPOCH, END)"
	}
	if err := p.table(heading, rows); err != nil {
		return err
	}
	if failed {
		return errPartial
	}
	return nil
}

func endsText(ends []replicaEnd) string {
	var out []string
	for _, e := range ends {
		out = append(out, fmt.Sprintf("%d: %d, %d", e.Node, e.LastEpoch, e.End))
	}
	return strings.Join(out, "; ")
}
