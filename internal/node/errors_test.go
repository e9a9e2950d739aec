package node

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
)

// TestEachFactOnce: a step's name is added to an error that does not say it already.
func TestEachFactOnce(t *testing.T) {
	taken := &net.OpError{Op: "listen", Net: "tcp", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	for _, c := range []struct {
		step string
		err  error
		want string
	}{
		{"metadata", errors.New("metadata: the vote is damaged"), "metadata: the vote is damaged"},
		{"data directory", errors.New("data directory /x is in use"), "data directory /x is in use"},
		{"data directory", errors.New("no space left"), "data directory: no space left"},
		{"listeners", fmt.Errorf("%w", &BindError{Door: "http", Address: "127.0.0.1:1", Err: taken}), "http cannot listen on 127.0.0.1:1: address already in use"},
		{"listeners", &BindError{Door: "http", Address: "x:1", Err: &net.OpError{Op: "listen", Err: errors.New("no such host")}}, "http cannot listen on x:1: no such host"},
	} {
		err := stepError(c.step, c.err)
		if err.Error() != c.want || !errors.Is(err, c.err) {
			t.Errorf("have %q, want %q", err, c.want)
		}
	}
}
