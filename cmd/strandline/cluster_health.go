package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

func newClusterHealthCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "health",
		Short: "Say whether the cluster is healthy, and if not, why",
		Long: `Say whether every partition has a leader and all its replicas in sync, and every node is up. What is wrong is named with its cause and,
where there is something to do, what. Moves in progress are shown with how far they are. Exit code 1 if anything is wrong.`,
		Example: `  strandline cluster health
  strandline cluster health -o json | jq '.problems[]'`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.clusterHealth(cmd.Context()) },
	}
}

// health is the answer of `cluster health -o json`.
type health struct {
	clusterView
	Healthy  bool     `json:"healthy"`
	Problems []string `json:"problems"`
	Notes    []string `json:"notes,omitempty"`
	Moves    []move   `json:"moves,omitempty"`
	// Counted are the partitions that were looked at.
	Counted int `json:"partitions"`
}

func (a *app) clusterHealth(ctx context.Context) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	v, err := s.view(ctx)
	if err != nil {
		return s.explain(err, "cannot see the cluster")
	}
	h := judge(v)
	h.Moves = s.measureMoves(ctx, v)
	if err := a.printer(s.settings).printHealth(h); err != nil {
		return err
	}
	if !h.Healthy {
		return errPartial // the reasons have been printed
	}
	return nil
}

func (p printer) printHealth(h health) error {
	if p.json {
		return p.object(h)
	}
	up := 0
	for _, n := range h.Nodes {
		if !n.Fenced && n.Silent == "" {
			up++
		}
	}
	word := "healthy"
	if !h.Healthy {
		word = "NOT healthy"
	}
	fmt.Fprintf(p.w, "cluster %s is %s: %d of %d nodes up, %d partitions, controller %s\n", h.ClusterID, word, up, len(h.Nodes), h.Counted, nodeOr(h.Controller))
	for _, line := range h.Problems {
		fmt.Fprintln(p.w, "- "+line)
	}
	for _, line := range h.Notes {
		fmt.Fprintln(p.w, "  "+line)
	}
	return p.printMoves(h.Moves)
}

func nodeOr(id int32) string {
	if id < 0 {
		return "unknown"
	}
	return fmt.Sprint(id)
}

// judge finds what is wrong and says why.
func judge(v *clusterView) health {
	h := health{clusterView: *v, Counted: len(v.Partitions), Problems: []string{}}
	problem := func(format string, args ...any) { h.Problems = append(h.Problems, fmt.Sprintf(format, args...)) }
	if v.Controller < 0 {
		says := ""
		if v.Quorum != "" {
			says = " (" + v.Quorum + ")"
		}
		problem("no controller leads%s: of the controllers %s, more than half must be up. Until then nodes and partitions are shown as they were last "+
			"known; publishing and reading go on where enough replicas are up, changes and elections wait", says, nodeList(v.Controllers))
	}
	for _, n := range v.Nodes {
		switch {
		case n.Fenced && n.Replicas > 0:
			problem("node %d is down or cannot be heard by the controller; it holds %d replicas", n.ID, n.Replicas)
		case n.Fenced:
			problem("node %d is down or cannot be heard by the controller; it holds no replica: start it, or forget it with `strandline node remove %d`", n.ID, n.ID)
		case n.Silent != "":
			problem("node %d does not answer at %s: %s; it holds %d replicas", n.ID, n.Address, n.Silent, n.Replicas)
		case n.Draining && n.Replicas > 0:
			h.Notes = append(h.Notes, fmt.Sprintf("node %d is being drained; %d replicas are left", n.ID, n.Replicas))
		case n.Draining:
			h.Notes = append(h.Notes, fmt.Sprintf("node %d is drained: stop it, then `strandline node remove %d`", n.ID, n.ID))
		}
	}
	for _, n := range v.Nodes {
		if n.Refuses != "" {
			problem("node %d takes no records of user topics: %s; make room (docs/operating/one-node.md, Disk limit), or raise its disk.limit.*", n.ID, n.Refuses)
		}
	}
	for _, id := range v.Unreached {
		problem("controller %d cannot be reached by the node that was asked: it is down, or cut off", id)
	}
	for _, line := range judgePartitions(v) {
		problem("%s", line)
	}
	h.Healthy = len(h.Problems) == 0
	return h
}

// namesMax bounds the partitions that one line names.
const namesMax = 5

// judgePartitions groups the partitions that are not well by what is wrong with them.
func judgePartitions(v *clusterView) []string {
	causes := map[string][]string{}
	for i := range v.Partitions {
		p := &v.Partitions[i]
		if why := illness(v, p); why != "" {
			causes[why] = append(causes[why], p.name())
		}
	}
	keys := slices.SortedFunc(maps.Keys(causes), func(a, b string) int { // the worst first, by the number in front
		return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(len(causes[b]), len(causes[a])), strings.Compare(a, b))
	})
	var out []string
	for _, k := range keys {
		out = append(out, fmt.Sprintf("%d partition(s) %s: %s", len(causes[k]), k[1:], firstOf(causes[k])))
	}
	return out
}

// illness says what is wrong with a partition, "" when nothing is. The first character orders: 0 offline, 1 under-replicated.
func illness(v *clusterView, p *viewPartition) string {
	able := slices.Concat(p.ISR, p.ELR)
	switch {
	case p.Leader < 0 && len(able) > 0:
		return fmt.Sprintf("0offline, waiting for node %s, which has every acknowledged record", nodeList(able))
	case p.Leader < 0:
		return fmt.Sprintf("0offline, and no replica is sure to have every acknowledged record (the last that had: node %s); see `strandline partition elect --recover`",
			nodeList(p.LastKnown))
	}
	var missing []string
	for _, n := range p.Replicas {
		if slices.Contains(p.ISR, n) || slices.Contains(p.Adding, n) {
			continue
		}
		why := "catching up"
		if at := v.node(n); at == nil || at.Fenced {
			why = "down"
		}
		missing = append(missing, fmt.Sprintf("node %d is %s", n, why))
	}
	if len(missing) == 0 {
		return ""
	}
	slices.Sort(missing)
	return "1with fewer replicas in sync than they should have, because " + strings.Join(missing, " and ")
}

// nodeList prints node ids for people.
func nodeList(ids []int32) string {
	if len(ids) == 0 {
		return "unknown"
	}
	var out []string
	for _, n := range ids {
		out = append(out, fmt.Sprint(n))
	}
	return strings.Join(out, ", ")
}
