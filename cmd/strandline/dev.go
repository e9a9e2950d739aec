package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"strandline.dev/internal/config"
	"strandline.dev/internal/config/load"
	"strandline.dev/internal/node"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
)

const devLong = `Runs one full node, or with --nodes a cluster in one process, on loopback for development: plaintext, topics created on first
use, flush policy "replicated" (kill -9 loses nothing, a power cut may), no minimum retention.

Of several nodes, the second listens on the given ports + 10, the third on + 20, and so on; node ids count from 1.

Without --data-dir the data goes to a temporary directory that is removed at exit; what a killed dev left behind there, the next one
removes. One line on stdout says when all accept work.`

const devExample = `  strandline dev
  strandline dev --nodes 3
  strandline dev --data-dir ./data --kafka 127.0.0.1:19092 --http 127.0.0.1:0`

// devFlags are the flags of `dev`.
type devFlags struct {
	dataDir, kafka, http, logLevel string
	insecure                       bool
	nodes                          int
}

// newDevCommand makes `dev`.
func newDevCommand() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use: "dev", Short: "Run a node, or a small cluster, for development", Long: devLong, Example: devExample,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := devConfig(f)
			if err != nil {
				return err
			}
			return runDev(cmd.Context(), cfg, f.nodes, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().IntVar(&f.nodes, "nodes", 1, "how many nodes to run in this process")
	cmd.Flags().StringVar(&f.dataDir, "data-dir", "", "`DIR` for the data, kept at exit (default: a temporary one, removed at exit)")
	cmd.Flags().StringVar(&f.kafka, "kafka", "127.0.0.1:9092", "`HOST:PORT` for Kafka clients; port 0 takes a free one")
	cmd.Flags().StringVar(&f.http, "http", "127.0.0.1:8080", "`HOST:PORT` for REST, health and metrics; port 0 takes a free one")
	cmd.Flags().StringVar(&f.logLevel, "log-level", "info", "`debug|info|warn|error`: least severity of the messages that are logged")
	cmd.Flags().BoolVar(&f.insecure, "insecure", false, "accept clients from other machines without TLS and authentication")
	return cmd
}

// devConfig is the configuration of dev; Data.Dir is "" when a temporary directory is wanted.
func devConfig(f devFlags) (config.Node, error) {
	if f.nodes < 1 || f.nodes > node.TogetherMax {
		return config.Node{}, usagef("--nodes %d: want 1 to %d", f.nodes, node.TogetherMax)
	}
	for _, door := range []struct{ flag, address string }{{"--kafka", f.kafka}, {"--http", f.http}} {
		if why := config.AddressFault(door.address); why != "" && !(door.flag == "--http" && door.address == config.NoHTTP) {
			return config.Node{}, usagef("%s %q %s: want HOST:PORT", door.flag, door.address, why)
		}
	}
	cfg, _, err := load.LoadDev(nil, os.Environ(), map[string]string{"data.dir": f.dataDir, "http.address": f.http, "log.level": f.logLevel})
	if err != nil {
		return cfg, usageError{err}
	}
	cfg.Listeners[0].Address = f.kafka
	if err := cfg.Validate(); err != nil {
		return cfg, usageError{err}
	}
	return cfg, refuseUnsafe(cfg, f.insecure)
}

// runDev runs the nodes, in a temporary directory if the configuration names none.
func runDev(ctx context.Context, cfg config.Node, count int, out, errOut io.Writer) error {
	if cfg.Data.Dir == "" {
		dir, err := os.MkdirTemp("", temporaryPrefix)
		if err != nil {
			return &failure{what: "no temporary directory", why: err, todo: "give one with --data-dir"}
		}
		defer func() { _ = os.RemoveAll(dir) }()
		// Beside the node, so that gigabytes of an earlier one do not delay the start; it is waited for, so that they do go.
		swept := make(chan struct{})
		go func() {
			defer close(swept)
			sweepTemporary(os.TempDir())
		}()
		defer func() { <-swept }()
		cfg.Data.Dir = dir
	}
	if err := refuseOtherCluster(sys.Real().FS, cfg.Data.Dir, count); err != nil {
		return err
	}
	all, err := node.Together(sys.Real(), cfg, count)
	var bind *node.BindError
	switch {
	case errors.As(err, &bind):
		return &failure{what: "no port for the nodes to talk to each other", why: bind}
	case err != nil:
		return usageError{err}
	}
	return runNodes(ctx, all, out, errOut)
}

// refuseOtherCluster refuses to run count nodes on a directory where fewer would leave some out, or where there is one that runs alone: a new, empty
// cluster inside its directory would look like a loss.
func refuseOtherCluster(files sys.FS, dir string, count int) error {
	alone, err := storage.HoldsData(files, dir)
	have := 0
	for i := 0; i < node.TogetherMax && err == nil; i++ {
		var holds bool
		if holds, err = storage.HoldsData(files, node.TogetherDir(dir, i)); holds {
			have = i + 1
		}
	}
	what := fmt.Sprintf("%d nodes", have)
	switch {
	case err != nil:
		return &failure{what: "data directory " + dir, why: err}
	case count == 1 && alone, count >= have && !alone, count == have:
		return nil
	case have == 0 || have == 1 && alone:
		have, what = 1, "one node"
	}
	return &failure{
		what: fmt.Sprintf("data directory %s holds the data of %s, not of %d", dir, what, count),
		todo: fmt.Sprintf("give --nodes %d, or another directory with --data-dir", have),
	}
}
