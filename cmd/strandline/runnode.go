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
	log := newLogger(cfg, errOut)
	setMemoryLimit(log)
	n, err := node.Start(ctx, node.Options{Config: cfg, Dev: dev, Machine: sys.Real(), Log: log})
	if err != nil {
		return startFailure(err, dev)
	}
	if _, err := fmt.Fprintf(out, "ready kafka=%s http=%s\n", strings.Join(n.KafkaAddresses(), ","), n.HTTPURL()); err != nil {
		log.Warn("the ready line could not be written", "error", err)
	}
	var failed error
	select {
	case <-ctx.Done():
		log.Info("stopping")
	case failed = <-n.Failed():
		log.Error("the node failed", "error", failed)
	}
	stopCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeMax)
	defer cancel()
	if err := n.Stop(stopCtx); err != nil {
		return &failure{what: "the node did not stop cleanly", why: errors.New(err.Error())} // whole: reason is for errors of a client
	}
	if failed != nil {
		return &failure{what: "the node failed", why: errors.New(failed.Error())}
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
