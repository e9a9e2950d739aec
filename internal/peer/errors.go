package peer

import (
	"errors"
	"fmt"
)

var (
	// ErrUnreachable means that nothing was sent. ErrRefused, ErrDenied and ErrBusy are kinds of it.
	ErrUnreachable = errors.New("node cannot be reached")
	// ErrRefused means that nobody listens at the address: the process is dead or not up yet. It always comes from a dial made after
	// the call began.
	ErrRefused = fmt.Errorf("%w: nobody listens", ErrUnreachable)
	// ErrDenied means that one side did not accept the other's hello.
	ErrDenied = fmt.Errorf("%w: hello not accepted", ErrUnreachable)
	// ErrBusy means that too much waits to be sent to the node.
	ErrBusy = fmt.Errorf("%w: too much waits to be sent to it", ErrUnreachable)
	// ErrBroken means that the message may have been handled: the connection broke, or the time was up, before an answer came.
	ErrBroken = errors.New("connection broke before an answer: outcome unknown")
)

// Fault says why a node answered a request with an error.
type Fault uint8

// The faults.
const (
	// Failed means that the handler returned an error.
	Failed Fault = 1
	// Overloaded means that the handler was not run: too many requests of this connection are in work.
	Overloaded Fault = 2
	// NotServed means that the node handles no message of the kind.
	NotServed Fault = 3
	// Malformed means that the message did not decode; the handler was not run.
	Malformed Fault = 4
)

// RemoteError is a node's answer that a request failed.
type RemoteError struct {
	Kind  Kind
	Fault Fault
	Text  string
}

func (e *RemoteError) Error() string {
	return fmt.Sprintf("%v refused by the other node: %s", e.Kind, e.Text)
}

// NotRun says that the handler was not run, so that nothing was decided.
func (e *RemoteError) NotRun() bool { return e.Fault != Failed }
