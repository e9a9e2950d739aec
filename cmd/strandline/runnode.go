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

	"strandline.dev/internal/config"
	"strandline.dev/internal/node"
	"strandline.dev/internal/sys"
)

// memoryLimitPart is the part of the container's memory given to the Go heap; the rest is stacks, page tables and the kernel's buffers.
const memoryLimitPart = 0.9

// runNode runs one node for keeps until ctx ends (SIGINT, SIGTERM) or the node fails, printing the ready line on out.
func runNode(ctx context.Context, cfg config.Node, out, errOut io.Writer) error {
	return runNodes(ctx, []node.Options{{Machine: sys.Real(), Config: cfg}}, out, errOut)
}

// runNodes runs nodes in one process until ctx ends or one of them fails. The ready line comes when all accept work.
func runNodes(ctx context.Context, all []node.Options, out, errOut io.Writer) error {
	log := newLogger(all[0].Config, errOut)
	super := newProcessSupervisor(log)
	setMemoryLimit(log)
	for i := range all {
		all[i].Log = log
		if len(all) > 1 {
			all[i].Log = log.With("node", all[i].Config.Node.ID)
		}
		warnOfModes(all[i].Log, all[i].Config)
	}
	nodes, err := node.StartAll(ctx, all)
	if err != nil && ctx.Err() != nil {
		log.Info("stopped before it accepted work", "start", err)
		return nil
	}
	if err != nil {
		return startFailure(err, all[0].Dev)
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
	super.tell("READY=1", "STATUS=accepts clients at "+strings.Join(kafkas, ", "))
	watched, unwatch := context.WithCancel(context.WithoutCancel(ctx)) // a stop too may hang
	defer unwatch()
	go super.keepAlive(watched, nodes)
	var broken error
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case broken = <-failed:
		log.Error("the node failed", "error", broken)
	}
	super.tell("STOPPING=1", "STATUS=hands over and stops")
	if err := node.StopAll(ctx, nodes); err != nil {
		return &failure{what: "the node did not stop cleanly", why: errors.New(err.Error())} // whole: reason is for errors of a client
	}
	if broken != nil {
		return &failure{what: "the node failed", why: errors.New(broken.Error())}
	}
	return nil
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
