package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/audit"
	"strandline.dev/internal/auth"
	"strandline.dev/internal/config"
	"strandline.dev/internal/config/load"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/quorum"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/sealed"
)

func newClusterCommand(a *app) *cobra.Command {
	return newGroupCommand("cluster", "See and change the cluster as a whole",
		"See whether the cluster is well, who is in it, and change who its controllers are.",
		newClusterHealthCommand(a), newClusterInfoCommand(a), newAddControllerCommand(a), newRemoveControllerCommand(a), newClusterRecoverCommand(a))
}

func newClusterInfoCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "info",
		Short: "Show the cluster's id, its controllers and its nodes",
		Example: `  strandline cluster info
  strandline cluster info -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withView(cmd.Context(), func(p printer, v *clusterView) error {
				if p.json {
					return p.object(v)
				}
				fmt.Fprintf(p.w, "cluster %s, controllers %s, led by %s in term %d\n", v.ClusterID, nodeList(v.Controllers), nodeOr(v.Controller), v.Term)
				return p.printNodes(v)
			})
		},
	}
}

// withView shows a view.
func (a *app) withView(ctx context.Context, show func(printer, *clusterView) error) error {
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
	return show(a.printer(s.settings), v)
}

func newAddControllerCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "add-controller NODE",
		Short: "Make a node a controller",
		Long: `Make a registered node a member of the metadata quorum. It first follows until it has caught up. Add its address to cluster.controllers in the
files of all nodes as well: that is where a node asks when it starts.`,
		Example: `  strandline cluster add-controller 4`,
		Args:    exactArgs("NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeController(cmd.Context(), args[0], "is a controller now", func(ctx context.Context, s *session, node int32) error {
				req := kmsg.NewPtrAddRaftVoterRequest()
				req.VoterID, req.TimeoutMillis = node, s.serverMillis()
				resp, err := req.RequestWith(ctx, s.client)
				if err != nil {
					return err
				}
				return answered(kerr.ErrorForCode(resp.ErrorCode), textOf(resp.ErrorMessage))
			})
		},
	}
}

func newRemoveControllerCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "remove-controller NODE",
		Short:   "Make a controller a node that only follows",
		Long:    `Take a node out of the metadata quorum. It goes on holding partitions. Take its address from cluster.controllers as well.`,
		Example: `  strandline cluster remove-controller 4`,
		Args:    exactArgs("NODE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeController(cmd.Context(), args[0], "is no controller any more", func(ctx context.Context, s *session, node int32) error {
				req := kmsg.NewPtrRemoveRaftVoterRequest()
				req.VoterID = node
				resp, err := req.RequestWith(ctx, s.client)
				if err != nil {
					return err
				}
				return answered(kerr.ErrorForCode(resp.ErrorCode), textOf(resp.ErrorMessage))
			})
		},
	}
}

// changedNode is the answer of commands about one node with -o json.
type changedNode struct {
	Node int32  `json:"node"`
	Done bool   `json:"done"`
	What string `json:"what"`
}

func (a *app) changeController(ctx context.Context, arg, done string, change func(context.Context, *session, int32) error) error {
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
	if err := change(ctx, s, node); err != nil {
		return s.explain(err, "the controllers were not changed")
	}
	return a.printer(s.settings).changed(node, done)
}

func (p printer) changed(node int32, what string) error {
	if p.json {
		return p.object(changedNode{node, true, what})
	}
	_, err := fmt.Fprintf(p.w, "node %d %s\n", node, what)
	return err
}

// nodeArg reads a node id.
func nodeArg(s string) (int32, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 {
		return 0, usagef("%q is no node id: want a number", s)
	}
	return int32(n), nil
}

func newClusterRecoverCommand(a *app) *cobra.Command {
	var path string
	var here bool
	cmd := &cobra.Command{
		Use:   "recover --config FILE --from-this-node",
		Short: "Rebuild the metadata quorum from one stopped node, when most controllers are lost for good",
		Long: `Make the node of FILE, which must be stopped, the only controller of its cluster, with everything its metadata log holds. Only for the loss of most
controllers: what only they knew is lost, and none of them may ever start again with its old data directory. Afterwards start this node,
then the others, and add controllers with "strandline cluster add-controller".`,
		Example: `  strandline cluster recover --config n1.yaml --from-this-node`,
		Args:    exactArgs(),
		RunE: func(_ *cobra.Command, _ []string) error {
			if path == "" || !here {
				return usagef("give --config FILE and --from-this-node: the node whose metadata the cluster goes on with")
			}
			return a.clusterRecover(path)
		},
	}
	cmd.Flags().StringVar(&path, "config", "", "the file this node is started with")
	cmd.Flags().BoolVar(&here, "from-this-node", false, "yes, this node's metadata is what the cluster goes on with")
	return cmd
}

// fileConfig reads the file a node is started with.
func fileConfig(path string) (config.Node, error) {
	text, err := readConfig(path)
	if err != nil {
		return config.Node{}, usageError{err}
	}
	c, _, err := load.Load(text, os.Environ(), nil)
	if err == nil && c.Data.Dir == "" {
		err = errors.New("data.dir is not set")
	}
	if err != nil {
		return c, usageError{fmt.Errorf("%s: %w", path, err)}
	}
	return c, nil
}

// offline works on the data directory of a node that is stopped, and leaves it as cleanly shut as it was.
func (a *app) offline(c config.Node, work func(sys.Machine, *storage.Dir, *slog.Logger) error) error {
	log := slog.New(slog.NewTextHandler(a.stderr, nil))
	machine := sys.Real()
	fsys, err := sealed.Open(machine.FS, c.Encryption.Keyring)
	if err != nil {
		return err
	}
	machine.FS = fsys
	dir, err := storage.OpenDir(storage.DirOptions{Machine: machine, Path: c.Data.Dir, Log: log})
	if err != nil {
		return err
	}
	epoch, clean := dir.CleanShutdown()
	err = work(machine, dir, log)
	return errors.Join(err, dir.Close(storage.CloseOptions{Clean: clean, BrokerEpoch: epoch}))
}

// offlineAct is offline for what belongs in the audit trail: it is written down in the data directory before it is done, and the trail has it once
// the node runs.
func (a *app) offlineAct(c config.Node, ev auth.Event, work func(sys.Machine, *storage.Dir, *slog.Logger) error) error {
	if !c.Audits() {
		return a.offline(c, work)
	}
	return a.offline(c, func(machine sys.Machine, dir *storage.Dir, log *slog.Logger) error {
		ev.Principal, ev.Peer, ev.Client = kafka.Principal{Type: "OS", Name: osUser()}, "this machine", "strandline"
		ended, err := audit.BeginOffline(machine.FS, c.Data.Dir, audit.Act{At: time.Now(), Event: ev})
		if err != nil {
			return fmt.Errorf("nothing was done, since it cannot be written down for the audit trail: %w", err)
		}
		err = work(machine, dir, log)
		outcome := ""
		if err != nil {
			outcome = err.Error()
		}
		return errors.Join(err, ended(outcome))
	})
}

// osUser is who runs this command.
func osUser() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

func (a *app) clusterRecover(path string) error {
	st, err := a.settings()
	if err != nil {
		return err
	}
	c, err := fileConfig(path)
	if err != nil {
		return err
	}
	if err := a.confirm(st, "Make this node the only controller, and lose what only the others knew?"); err != nil {
		return err
	}
	var done quorum.Rescue
	act := auth.Event{
		API: "ClusterRecover", Resource: fmt.Sprintf("Cluster:%s, Broker:%v", metadata.ClusterName, c.Node.ID),
		After: "this node is the only controller; what only the others knew is lost",
	}
	err = a.offlineAct(c, act, func(machine sys.Machine, dir *storage.Dir, log *slog.Logger) (err error) {
		done, err = quorum.RecoverFromThisNode(quorum.Config{
			Machine: machine, Dir: dir, Node: c.Node.ID, Controllers: c.Cluster.Controllers, Log: log,
		})
		return err
	})
	if err != nil {
		return failf(err, "the quorum was not rebuilt")
	}
	p := a.printer(st)
	if p.json {
		return p.object(done)
	}
	_, err = fmt.Fprintf(p.w, "node %v is the only controller of cluster %s; the metadata goes on at %d after entry %d; %d controllers of the old quorum must never start again with their data\n",
		c.Node.ID, done.Cluster, done.Index, done.Last, len(done.Lost))
	return err
}
