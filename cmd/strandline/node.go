package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/config"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

func newNodeCommand(a *app) *cobra.Command {
	return newGroupCommand("node", "See nodes, and take one out of the cluster",
		"See the nodes of the cluster and what each holds; move everything off one, and forget it.",
		newNodeListCommand(a), newNodeDrainCommand(a), newNodeRemoveCommand(a), newQuarantineCommand(a))
}

func newNodeListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the nodes, whether they are up, and what they hold",
		Example: `  strandline node list
  strandline node list -o json | jq 'select(.fenced)'`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withView(cmd.Context(), func(p printer, v *clusterView) error { return p.printNodes(v) })
		},
	}
}

func (p printer) printNodes(v *clusterView) error {
	var rows [][]string
	for _, n := range v.Nodes {
		if p.json {
			if err := p.object(n); err != nil {
				return err
			}
			continue
		}
		state := "up"
		switch {
		case n.Fenced:
			state = "down"
		case n.Silent != "":
			state = "silent"
		case n.Draining && n.Replicas == 0:
			state = "drained"
		case n.Draining:
			state = "draining"
		}
		rack := n.Rack
		if rack == "" {
			rack = "-"
		}
		rows = append(rows, []string{fmt.Sprint(n.ID), state, rack, n.Address, fmt.Sprint(n.Replicas), fmt.Sprint(n.Leaders)})
	}
	return p.table([]string{"NODE", "STATE", "RACK", "ADDRESS", "REPLICAS", "LEADERS"}, rows)
}

func newNodeDrainCommand(a *app) *cobra.Command {
	var undo, noWait bool
	cmd := &cobra.Command{
		Use:   "drain NODE",
		Short: "Move every leadership and replica off a node",
		Long: `Take a node out of service without loss: it gets nothing new, its leaderships go to others at once, and its replicas are copied elsewhere, a few at a
time, before they are taken from it. The command tells how far that is and returns when the node is empty; it can be interrupted, the drain
goes on. A node that is down can be drained too, as far as others hold its partitions. --undo puts it back into service.`,
		Example: `  strandline node drain 3
  strandline node drain 3 --no-wait
  strandline node drain 3 --undo`,
		Args: exactArgs("NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.nodeDrain(cmd.Context(), args[0], undo, noWait)
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "put the node back into service")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "return when the drain has begun")
	return cmd
}

func (a *app) nodeDrain(ctx context.Context, arg string, undo, noWait bool) error {
	node, err := nodeArg(arg)
	if err != nil {
		return err
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.setDrain(ctx, node, !undo); err != nil {
		return s.explain(err, "node %d is not being drained", node)
	}
	p := a.printer(s.settings)
	switch {
	case undo:
		return p.changed(node, "is in service again")
	case noWait:
		return p.changed(node, "is being drained")
	}
	var stuck []string
	err = a.follow(ctx, s, func(v *clusterView) bool {
		n := v.node(node)
		if n == nil || n.Replicas == 0 {
			return true
		}
		stuck = v.stuckOn(node)
		return len(stuck) == n.Replicas
	}, func(v *clusterView) string {
		return fmt.Sprintf("node %d still holds %d replicas, and nothing moves: they wait for another node that is up and does not hold the same partitions",
			node, v.node(node).Replicas)
	})
	switch {
	case err != nil:
		return err
	case len(stuck) > 0:
		return &failure{
			what: fmt.Sprintf("node %d is not drained", node),
			why:  fmt.Errorf("%d replicas have nowhere to go: every other node that is up holds those partitions already (%s)", len(stuck), firstOf(stuck)),
			todo: fmt.Sprintf("add a node, and the drain goes on by itself; or take it back with `strandline node drain %d --undo`", node),
		}
	}
	return p.changed(node, fmt.Sprintf("is drained; stop it, then `strandline node remove %d`", node))
}

// stuckOn are the partitions whose replica on a node can go nowhere: no other node that can take replicas lacks one. What is on its way is not stuck.
func (v *clusterView) stuckOn(node int32) []string {
	var names []string
	for i := range v.Partitions {
		p := &v.Partitions[i]
		if !slices.Contains(p.Replicas, node) || p.moving() {
			continue
		}
		if !slices.ContainsFunc(v.Nodes, func(n viewNode) bool { return n.ID != node && v.usable(n.ID) && !slices.Contains(p.Replicas, n.ID) }) {
			names = append(names, p.name())
		}
	}
	return names
}

// firstOf names the first of many.
func firstOf(names []string) string {
	shown := strings.Join(names[:min(len(names), namesMax)], ", ")
	if len(names) > namesMax {
		shown += fmt.Sprintf(" and %d more", len(names)-namesMax)
	}
	return shown
}

func (s *session) setDrain(ctx context.Context, node int32, on bool) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	res := kmsg.NewIncrementalAlterConfigsRequestResource()
	res.ResourceType, res.ResourceName = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(node))
	c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	c.Name, c.Op = config.DrainKey, kmsg.IncrementalAlterConfigOpDelete
	if on {
		c.Op, c.Value = kmsg.IncrementalAlterConfigOpSet, kmsg.StringPtr("true")
	}
	res.Configs = append(res.Configs, c)
	req.Resources = append(req.Resources, res)
	// The client would send it to the node itself, which may be down.
	var v clusterView
	if err := s.viewNodes(ctx, &v); err != nil {
		return err
	}
	to := slices.IndexFunc(v.Nodes, func(n viewNode) bool { return !n.Fenced })
	if to < 0 {
		return errors.New("no node is up")
	}
	answer, err := s.client.Broker(int(v.Nodes[to].ID)).RetriableRequest(ctx, req)
	if err != nil {
		return err
	}
	for _, r := range answer.(*kmsg.IncrementalAlterConfigsResponse).Resources {
		if err := answered(kerr.ErrorForCode(r.ErrorCode), textOf(r.ErrorMessage)); err != nil {
			return err
		}
	}
	return nil
}

func newNodeRemoveCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "remove NODE",
		Short: "Forget a node that holds nothing and is stopped",
		Long: `Forget a node: it is not listed any more, and nobody waits for it. It must hold no replica (see "strandline node drain"), be stopped, and be no
controller (see "strandline cluster remove-controller").`,
		Example: `  strandline node remove 3`,
		Args:    exactArgs("NODE"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.nodeRemove(cmd.Context(), args[0]) },
	}
}

func (a *app) nodeRemove(ctx context.Context, arg string) error {
	node, err := nodeArg(arg)
	if err != nil {
		return err
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	req := kmsg.NewPtrUnregisterBrokerRequest()
	req.BrokerID = node
	resp, err := req.RequestWith(ctx, s.client)
	if err == nil {
		err = answered(kerr.ErrorForCode(resp.ErrorCode), textOf(resp.ErrorMessage))
	}
	if err != nil {
		return s.explain(err, "node %d is not removed", node)
	}
	return a.printer(s.settings).changed(node, "is forgotten")
}

func newQuarantineCommand(a *app) *cobra.Command {
	var path string
	list := &cobra.Command{
		Use:     "list --config FILE",
		Short:   "List the partition directories that a stopped node has set aside",
		Example: `  strandline node quarantine list --config n1.yaml`,
		Args:    exactArgs(),
		RunE:    func(_ *cobra.Command, _ []string) error { return a.quarantine(path, "") },
	}
	drop := &cobra.Command{
		Use:     "drop DIR --config FILE",
		Short:   "Delete one of them, for good",
		Example: `  strandline node quarantine drop 0123456789abcdef0123456789abcdef-0 --config n1.yaml`,
		Args:    exactArgs("DIR"),
		RunE:    func(_ *cobra.Command, args []string) error { return a.quarantine(path, args[0]) },
	}
	for _, c := range []*cobra.Command{list, drop} {
		c.Flags().StringVar(&path, "config", "", "the file the node is started with")
	}
	return newGroupCommand("quarantine", "See and delete what a node has set aside",
		`A partition directory whose topic nobody knows is not deleted but moved to DATA/quarantine, and back when its topic turns up. These commands work on
a node that is stopped.`, list, drop)
}

// setAside is one line of `node quarantine list -o json`.
type setAside struct {
	Directory string `json:"directory"`
	Dropped   bool   `json:"dropped,omitempty"`
}

func (a *app) quarantine(path, drop string) error {
	if path == "" {
		return usagef("give --config FILE: the node whose directories are meant")
	}
	st, err := a.settings()
	if err != nil {
		return err
	}
	c, err := fileConfig(path)
	if err != nil {
		return err
	}
	if drop != "" {
		if err := a.confirm(st, "Delete "+drop+" and its records for good?"); err != nil {
			return err
		}
	}
	p := a.printer(st)
	within := a.offline
	if drop != "" {
		within = func(c config.Node, work func(sys.Machine, *storage.Dir, *slog.Logger) error) error {
			return a.offlineAct(c, auth.Event{API: "QuarantineDrop", Resource: "Quarantine:" + drop, After: "deleted, with its records"}, work)
		}
	}
	err = within(c, func(_ sys.Machine, dir *storage.Dir, log *slog.Logger) error {
		all, err := dir.Quarantined()
		if err != nil {
			return err
		}
		for _, tp := range all {
			switch name := tp.String(); {
			case drop == "":
				err = p.aside(setAside{Directory: name})
			case name == drop:
				log.Warn("a quarantined directory is deleted on the operator's word", "directory", name)
				if err = os.RemoveAll(filepath.Join(dir.Path(), "quarantine", name)); err != nil {
					return err
				}
				return p.aside(setAside{Directory: name, Dropped: true})
			}
			if err != nil {
				return err
			}
		}
		if drop != "" {
			return fmt.Errorf("%s is not in quarantine", drop)
		}
		return nil
	})
	if err != nil {
		return failf(err, "quarantine of %s", c.Data.Dir)
	}
	return nil
}

func (p printer) aside(d setAside) error {
	if p.json {
		return p.object(d)
	}
	suffix := ""
	if d.Dropped {
		suffix = " deleted"
	}
	_, err := fmt.Fprintln(p.w, d.Directory+suffix)
	return err
}
