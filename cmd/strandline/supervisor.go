package main

import (
	"context"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"strandline.dev/internal/node"
)

// supervisor is who started this process and wants to hear how it is: systemd, by the datagrams of sd_notify(3). The zero value is nobody.
type supervisor struct {
	socket string        // a path, or @name for an abstract one
	every  time.Duration // how often a sign of life is due, 0: never
	log    *slog.Logger
}

// signsPerDeadline is how many signs of life are sent in the time after which the supervisor takes the process for hung.
const signsPerDeadline = 3

// newSupervisor reads what systemd leaves in the environment. A deadline that is meant for another process (WATCHDOG_PID) is not ours.
func newSupervisor(lookup func(string) (string, bool), pid int, log *slog.Logger) supervisor {
	socket, _ := lookup("NOTIFY_SOCKET")
	s := supervisor{socket: socket, log: log}
	if whose, ok := lookup("WATCHDOG_PID"); ok && whose != strconv.Itoa(pid) {
		return s
	}
	text, _ := lookup("WATCHDOG_USEC")
	if usec, err := strconv.ParseInt(text, 10, 64); err == nil && usec > 0 {
		s.every = time.Duration(usec) * time.Microsecond / signsPerDeadline
	}
	return s
}

// tell sends one message of lines like READY=1. A supervisor that cannot be reached keeps no node from its work.
func (s supervisor) tell(lines ...string) {
	if s.socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: s.socket, Net: "unixgram"})
	if err == nil {
		_, err = conn.Write([]byte(strings.Join(lines, "\n")))
		_ = conn.Close()
	}
	if err != nil {
		s.log.Warn("the supervisor was not told", "message", lines[0], "socket", s.socket, "error", err)
	}
}

// keepAlive sends signs of life for as long as all nodes give theirs, until ctx ends. A node that never answers ends them: systemd then aborts
// the process, whose last words are what each goroutine was doing, and starts it again.
func (s supervisor) keepAlive(ctx context.Context, nodes []*node.Node) {
	if s.socket == "" || s.every == 0 {
		return
	}
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	for {
		for _, n := range nodes {
			n.Answer()
		}
		s.tell("WATCHDOG=1")
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// newProcessSupervisor is the supervisor of this process.
func newProcessSupervisor(log *slog.Logger) supervisor {
	return newSupervisor(os.LookupEnv, os.Getpid(), log)
}
