package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/node"
	"strandline.dev/internal/sys"
)

// stopTimeMax bounds a graceful stop: requests that are still parked then are cut off, as a crash would.
const stopTimeMax = 30 * time.Second

// memoryLimitPart is the part of the container's memory given to the Go heap; the rest is stacks, page tables and the kernel's buffers.
const memoryLimitPart = 0.9

// runNode runs one node until ctx ends (SIGINT, SIGTERM) or the node fails, printing the ready line on out.
func runNode(ctx context.Context, cfg config.Node, dev bool, out, errOut io.Writer) error {
	return runNodes(ctx, []node.Options{{Config: cfg, Dev: dev}}, out, errOut)
}

// runNodes runs nodes in one process until ctx ends or one of them fails. The ready line comes when all accept work.
func runNodes(ctx context.Context, all []node.Options, out, errOut io.Writer) error {
	log := newLogger(all[0].Config, errOut)
	setMemoryLimit(log)
	for i := range all {
		all[i].Machine, all[i].Log = sys.Real(), log
		if len(all) > 1 {
			all[i].Log = log.With("node", all[i].Config.Node.ID)
		}
	}
	nodes, err := startNodes(ctx, all)
	if err != nil {
		return err
	}
	var kafkas, https []string
	failed := make(chan error, len(nodes))
	for _, n := range nodes {
		kafkas, https = append(kafkas, n.KafkaAddresses()...), append(https, n.HTTPURL())
		go func() {
			select {
			case err := <-n.Failed():
				failed <- err
			case <-ctx.Done():
			}
		}()
	}
	if _, err := fmt.Fprintf(out, "ready kafka=%s http=%s\n", strings.Join(kafkas, ","), strings.Join(https, ",")); err != nil {
		log.Warn("the ready line could not be written", "error", err)
	}
	var broken error
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case broken = <-failed:
		log.Error("the node failed", "error", broken)
	}
	if err := stopNodes(ctx, nodes); err != nil {
		return &failure{what: "the node did not stop cleanly", why: errors.New(err.Error())} // whole: reason is for errors of a client
	}
	if broken != nil {
		return &failure{what: "the node failed", why: errors.New(broken.Error())}
	}
	return nil
}

// startNodes starts all at once, since they wait for each other, and none if one cannot start.
func startNodes(ctx context.Context, all []node.Options) ([]*node.Node, error) {
	starting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	nodes, errs := make([]*node.Node, len(all)), make([]error, len(all))
	var first atomic.Pointer[error]
	var done sync.WaitGroup
	for i, o := range all {
		done.Go(func() {
			if nodes[i], errs[i] = node.Start(starting, o); errs[i] != nil {
				first.CompareAndSwap(nil, &errs[i])
				giveUp()
			}
		})
	}
	done.Wait()
	if err := first.Load(); err != nil {
		_ = stopNodes(ctx, nodes) // what stopped the start is the error to tell
		return nil, startFailure(*err, all[0].Dev)
	}
	return nodes, nil
}

// stopNodes stops those that run, all at once.
func stopNodes(ctx context.Context, nodes []*node.Node) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeMax)
	defer cancel()
	errs := make([]error, len(nodes))
	var done sync.WaitGroup
	for i, n := range nodes {
		if n != nil {
			done.Go(func() { errs[i] = n.Stop(ctx) })
		}
	}
	done.Wait()
	return errors.Join(errs...)
}

// newLogger logs text on a terminal and JSON elsewhere, unless the configuration says which.
func newLogger(cfg config.Node, w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Log.Level)); err != nil {
		level = slog.LevelInfo // config.Validate has refused anything else
	}
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: withUnit}
	if cfg.Log.Format == "text" || cfg.Log.Format == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, o))
	}
	return slog.New(slog.NewJSONHandler(w, o))
}

// withUnit writes a duration as "30s" in JSON too, where slog writes a bare number of nanoseconds.
func withUnit(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// setMemoryLimit gives the garbage collector the container's limit, if there is one and GOMEMLIMIT does not say otherwise.
func setMemoryLimit(log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	for _, name := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || limit <= 0 || limit > 1<<50 { // "max", or cgroup v1's way of saying it
			return
		}
		debug.SetMemoryLimit(int64(float64(limit) * memoryLimitPart))
		log.Debug("memory limit set from the container", "limit", limit)
		return
	}
}
