package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"strandline.dev/internal/node"
	"strandline.dev/internal/quorum"
	"strandline.dev/internal/sys"
)

// TestOneLine: joined faults stay apart, are told once, and a heading keeps what stands under it.
func TestOneLine(t *testing.T) {
	for in, want := range map[string]string{
		"a": "a", "a\nb": "a; b", "a\r\nb\n": "a; b", "a\na": "a", "yaml: errors:\n  line 3: no": "yaml: errors: line 3: no", "": "",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("%q: have %q, want %q", in, got, want)
		}
	}
}

// TestStartFailureSaysWhatToDo: which door, which address, and the flag that changes it.
func TestStartFailureSaysWhatToDo(t *testing.T) {
	taken := &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	kafka := &node.BindError{Key: "listeners.0.address", Door: "listener plain", Address: "127.0.0.1:9092", Err: taken}
	http := &node.BindError{Key: "http.address", Door: "http", Address: "127.0.0.1:80", Err: os.NewSyscallError("bind", syscall.EACCES)}
	for _, c := range []struct {
		err  error
		dev  bool
		want string
	}{
		{kafka, true, "listener plain cannot listen on 127.0.0.1:9092: address already in use; end the process that listens there, or choose another address with --kafka;"},
		{kafka, false, "with --listeners-0-address (listeners.0.address in the file)"},
		{http, true, "http cannot listen on 127.0.0.1:80: permission denied; choose another address with --http;"},
		{http, false, "with --http-address (http.address in the file)"},
		{fmt.Errorf("data directory /x is in use: %w", sys.ErrLocked), true, "; end that process, or give another directory with --data-dir"},
		{fmt.Errorf("registration: %w", context.DeadlineExceeded), false, "the node could not start: registration: not done in time"},
		{fmt.Errorf("metadata: %w", &quorum.CorruptError{File: "/x/vote", Why: "it is short"}), false, "/x/vote: it is short; put the file back; or, while most of the other controllers run, start with an empty data directory"},
		{errors.Join(errors.New("a"), errors.New("b")), false, "the node could not start: a; b"},
	} {
		if got := startFailure(c.err, c.dev).Error(); !strings.Contains(got, c.want) {
			t.Errorf("have %s\nwant %s", got, c.want)
		}
	}
}
