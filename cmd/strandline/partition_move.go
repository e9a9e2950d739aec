package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// moveFlags are the flags of `partition move`.
type moveFlags struct {
	partitions, to                 []string
	spread, cancel, dryRun, noWait bool
	changeFactor                   bool
}

func newPartitionMoveCommand(a *app) *cobra.Command {
	var f moveFlags
	cmd := &cobra.Command{
		Use:   "move [TOPIC...]",
		Short: "Move replicas of partitions to other nodes",
		Long: `Give partitions other replicas: they are copied to the new nodes, and only when those have everything are they taken from the old ones. The first node
of --to is the preferred leader; it names as many nodes as there are replicas, unless --change-factor is given. --spread moves as few replicas as it takes for all nodes to hold about the same number, without putting
two replicas of a partition into one rack that were not; name topics, or none for all. The command tells how far the moves are, and can be
interrupted: they go on. --cancel takes moves back.`,
		Example: `  strandline partition move orders -p 0 --to 2,3,4
  strandline partition move --spread              # after a node was added
  strandline partition move --spread --dry-run
  strandline partition move orders -p 0 --cancel`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.partitionMove(cmd.Context(), args, f) },

		ValidArgsFunction: a.completeTopics,
	}
	cmd.Flags().StringSliceVarP(&f.partitions, "partition", "p", nil, "the partitions; none means all of the topic")
	cmd.Flags().StringSliceVar(&f.to, "to", nil, "the nodes that are to hold them, preferred leader first")
	cmd.Flags().BoolVar(&f.spread, "spread", false, "find out by itself what to move, so that all nodes hold about the same")
	cmd.Flags().BoolVar(&f.cancel, "cancel", false, "take moves back")
	cmd.Flags().BoolVar(&f.changeFactor, "change-factor", false, "let --to name more or fewer nodes than the partitions have replicas")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be moved, move nothing")
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false, "return when the moves have begun")
	return cmd
}

// planned is one partition and the replicas it is to have; nil takes a move back.
type planned struct {
	Topic     string  `json:"topic"`
	Partition int32   `json:"partition"`
	From      []int32 `json:"from"`
	To        []int32 `json:"to"`
	DryRun    bool    `json:"dryRun,omitempty"`
	Error     string  `json:"error,omitempty"`
}

func (m planned) name() string { return fmt.Sprintf("%s-%d", m.Topic, m.Partition) }

func (a *app) partitionMove(ctx context.Context, topics []string, f moveFlags) error {
	if ways := count(f.spread, f.cancel, len(f.to) > 0); ways != 1 {
		return usagef("give one of --to, --spread and --cancel")
	}
	if len(topics) != 1 && !f.spread {
		return usagef("name one topic")
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	within, cancel := s.bounded(ctx)
	defer cancel()
	v, err := s.view(within)
	if err != nil {
		return s.explain(err, "cannot see the cluster")
	}
	plan, err := f.plan(v, topics)
	if err != nil {
		return err
	}
	if !f.dryRun {
		if err := s.reassign(within, plan, f.changeFactor); err != nil {
			return s.explain(err, "nothing was moved")
		}
	}
	if err := a.printer(s.settings).printPlan(plan, f); err != nil || f.dryRun || f.noWait || f.cancel || len(plan) == 0 {
		return err
	}
	var names []string
	for _, m := range plan {
		names = append(names, m.name())
	}
	return a.follow(ctx, s, settled(names), func(*clusterView) string { return "the moves are being completed" })
}

func count(flags ...bool) int {
	n := 0
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

// plan says what is to be moved where.
func (f moveFlags) plan(v *clusterView, topics []string) ([]planned, error) {
	numbers, err := partitionNumbers(f.partitions)
	if err != nil {
		return nil, err
	}
	if f.spread {
		return spread(v, topics), nil
	}
	to, err := partitionNumbers(f.to)
	if err != nil {
		return nil, err
	}
	var plan []planned
	for i := range v.Partitions {
		p := &v.Partitions[i]
		if p.Topic != topics[0] || len(numbers) > 0 && !slices.Contains(numbers, p.Partition) || f.cancel && !p.moving() {
			continue
		}
		m := planned{Topic: p.Topic, Partition: p.Partition, From: p.Replicas, To: to, DryRun: f.dryRun}
		if f.cancel {
			m.To = nil
		} else if has := len(p.Replicas) - len(p.Adding); len(to) != has && !f.changeFactor {
			return nil, &failure{
				what: "nothing was moved", why: fmt.Errorf("%s has %d replicas, and --to names %d nodes", p.name(), has, len(to)),
				todo: "name as many, or add --change-factor to give it another number of replicas",
			}
		}
		plan = append(plan, m)
	}
	if len(plan) == 0 && !f.cancel {
		return nil, &failure{what: "nothing to move", why: errors.New("no such partition of " + topics[0]), todo: "see `strandline topic describe`"}
	}
	return plan, nil
}

// reassign asks for the moves, and notes at each what was refused.
func (s *session) reassign(ctx context.Context, plan []planned, factorChange bool) error {
	if len(plan) == 0 {
		return nil
	}
	req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
	req.TimeoutMillis, req.AllowReplicationFactorChange = s.serverMillis(), factorChange
	for _, m := range plan {
		if n := len(req.Topics); n == 0 || req.Topics[n-1].Topic != m.Topic {
			t := kmsg.NewAlterPartitionAssignmentsRequestTopic()
			t.Topic = m.Topic
			req.Topics = append(req.Topics, t)
		}
		p := kmsg.NewAlterPartitionAssignmentsRequestTopicPartition()
		p.Partition, p.Replicas = m.Partition, m.To
		t := &req.Topics[len(req.Topics)-1]
		t.Partitions = append(t.Partitions, p)
	}
	resp, err := req.RequestWith(ctx, s.client)
	if err == nil {
		err = answered(kerr.ErrorForCode(resp.ErrorCode), textOf(resp.ErrorMessage))
	}
	if err != nil {
		return err
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			for i := range plan {
				if err := answered(kerr.ErrorForCode(p.ErrorCode), textOf(p.ErrorMessage)); err != nil && plan[i].Topic == t.Topic && plan[i].Partition == p.Partition {
					plan[i].Error = reason(err)
				}
			}
		}
	}
	return nil
}

// printPlan prints what was begun, and fails in part when something was refused.
func (p printer) printPlan(plan []planned, f moveFlags) error {
	var rows [][]string
	failed := 0
	for _, m := range plan {
		if m.Error != "" {
			failed++
		}
		if p.json {
			if err := p.object(m); err != nil {
				return err
			}
			continue
		}
		to := strings.Trim(fmt.Sprint(m.To), "[]")
		if f.cancel {
			to = "(taken back)"
		}
		rows = append(rows, []string{m.name(), strings.Trim(fmt.Sprint(m.From), "[]"), to, m.Error})
	}
	if len(plan) == 0 && !p.json {
		fmt.Fprintln(p.w, "nothing to do")
	}
	if err := p.table([]string{"PARTITION", "FROM", "TO", ""}, rows); err != nil {
		return err
	}
	if failed > 0 {
		return errPartial
	}
	return nil
}

// spread finds moves after which all nodes that can take replicas hold about the same number of them. Each takes one replica from the node that holds
// most to one that holds least; a partition is moved at most once, and never into fewer racks than it is in.
func spread(v *clusterView, topics []string) []planned {
	held := map[int32]int{}
	var nodes []int32
	for _, n := range v.Nodes {
		if v.usable(n.ID) {
			nodes, held[n.ID] = append(nodes, n.ID), n.Replicas
		}
	}
	taken := map[int]bool{}
	var plan []planned
	for {
		slices.SortStableFunc(nodes, func(a, b int32) int { return held[b] - held[a] })
		at, m, ok := nextMove(v, topics, nodes, held, taken)
		if !ok {
			break
		}
		taken[at] = true
		plan = append(plan, m)
	}
	slices.SortFunc(plan, func(a, b planned) int {
		return strings.Compare(fmt.Sprintf("%s %9d", a.Topic, a.Partition), fmt.Sprintf("%s %9d", b.Topic, b.Partition))
	})
	return plan
}

// nextMove finds one move between nodes that differ by two replicas or more.
func nextMove(v *clusterView, topics []string, nodes []int32, held map[int32]int, taken map[int]bool) (int, planned, bool) {
	for _, from := range nodes {
		for _, to := range slices.Backward(nodes) {
			if held[from]-held[to] < 2 {
				break
			}
			for i := range v.Partitions {
				p := &v.Partitions[i]
				if taken[i] || p.moving() || len(topics) > 0 && !slices.Contains(topics, p.Topic) ||
					!slices.Contains(p.Replicas, from) || slices.Contains(p.Replicas, to) {
					continue
				}
				next := slices.Clone(p.Replicas)
				next[slices.Index(next, from)] = to
				if racksOf(v, next) < racksOf(v, p.Replicas) {
					continue
				}
				held[from]--
				held[to]++
				return i, planned{Topic: p.Topic, Partition: p.Partition, From: p.Replicas, To: next}, true
			}
		}
	}
	return 0, planned{}, false
}

func racksOf(v *clusterView, nodes []int32) int {
	racks := map[string]bool{}
	for _, id := range nodes {
		if n := v.node(id); n != nil {
			racks[n.Rack] = true
		}
	}
	return len(racks)
}
