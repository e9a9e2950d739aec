package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// errPartial says that the failures have been printed record by record or topic by topic already; only the exit code is left.
var errPartial = errors.New("failed in part")

// errNoName refuses a header without a name.
var errNoName = errors.New("a header name is a string")

var (
	// errWrongAnswer is an answer that does not fit the question.
	errWrongAnswer = errors.New("the broker's answer does not fit the request")
	// errNoRule says that no rule of access was selected.
	errNoRule = errors.New("no rule is like that")
	// errUserExists says that there is a user of that name.
	errUserExists = errors.New("there is a user of that name")
)

// errHalfSurrogate refuses a JSON escape that stands for no character.
var errHalfSurrogate = errors.New(`a \uD800..\uDFFF escape without its other half is no text; give bytes as {"base64":"..."}`)

// errNoAnswer says that a broker's answer left out what was asked for.
var errNoAnswer = errors.New("the broker's answer does not mention it")

// usageError is a command line that cannot be carried out as written: exit code 2.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// usagef makes a usageError.
func usagef(format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...)}
}

// failure is an operation that failed: what failed, why, and what a person can do about it ("" when there is nothing to say).
type failure struct {
	what string
	why  error
	todo string
}

func (e *failure) Error() string {
	s := e.what
	if e.why != nil {
		s += ": " + reason(e.why)
	}
	if e.todo != "" {
		s += "; " + e.todo
	}
	return oneLine(s)
}

func (e *failure) Unwrap() error { return e.why }

// failf wraps why with what was attempted.
func failf(why error, format string, args ...any) error {
	return &failure{what: fmt.Sprintf(format, args...), why: why, todo: advice(why)}
}

// brokerError is an error code of a broker with the sentence it sent along.
type brokerError struct {
	code    error
	message string
}

func (e *brokerError) Error() string { return reason(e.code) }
func (e *brokerError) Unwrap() error { return e.code }

// answered joins the code and the message of one answer; nil when the answer is a success.
func answered(code error, message string) error {
	if code == nil || message == "" {
		return code
	}
	return &brokerError{code, message}
}

// reason renders an error from the client library as a person would say it.
func reason(err error) string {
	var ke *kerr.Error
	var be *brokerError
	var op *net.OpError
	switch {
	case errors.As(err, &be) && errors.As(be.code, &ke):
		return ke.Message + " (" + strings.TrimSuffix(be.message, ".") + ")"
	case errors.As(err, &ke):
		if ke.Description == "" {
			return ke.Message
		}
		return ke.Message + " (" + strings.TrimSuffix(ke.Description, ".") + ")"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, kgo.ErrRecordTimeout):
		return "no answer in time"
	case errors.Is(err, context.Canceled):
		return "interrupted"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &op):
		return op.Err.Error()
	case errors.Is(err, io.EOF):
		return "the server closed the connection"
	}
	return err.Error()
}

// advice is the "what to do" of an error whose cause is known.
func advice(err error) string {
	switch {
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		return "see `strandline topic list`, or create it with `strandline topic create`"
	case errors.Is(err, kerr.TopicAlreadyExists):
		return "see it with `strandline topic describe`"
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		return "it needs a right on the cluster; log in as an administrator, by --profile or -X user=NAME"
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "see the user and password of your profile, or -X user=NAME and STRANDLINE_CLIENT_PASSWORD"
	case errors.Is(err, kerr.NotController):
		return "nothing was changed; more than half of the controllers must be up: see `strandline cluster health`, then try again"
	case errors.Is(err, kerr.InvalidReplicationFactor):
		return "give a -r not above the number of brokers"
	case errors.Is(err, kerr.NotEnoughReplicas), errors.Is(err, kerr.NotEnoughReplicasAfterAppend):
		return "see the ISR with `strandline topic describe`"
	case errors.Is(err, kerr.InvalidUpdateVersion):
		return "see what it is now with `strandline topic describe`, then name its version"
	case errors.Is(err, kerr.MessageTooLarge):
		return "see max.message.bytes with `strandline topic describe`"
	}
	return ""
}

// oneLine keeps the promise that an error is one line on stderr. The lines of a joined error are separate faults, each told once.
func oneLine(s string) string {
	var line string
	var told []string
	for part := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == '\n' || r == '\r' }) {
		part = strings.TrimSpace(part)
		switch {
		case part == "" || slices.Contains(told, part):
			continue
		case line == "" || strings.HasSuffix(line, ":"):
			line = strings.TrimPrefix(line+" "+part, " ")
		default:
			line += "; " + part
		}
		told = append(told, part)
	}
	return line
}

// exitCode decides the exit code; ran says that the command line was understood and the command started.
func exitCode(err error, ran bool) int {
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage), !ran:
		return 2
	}
	return 1
}

// report prints the one line for err; command is the path of the command that failed.
func report(w io.Writer, err error, code int, command string) {
	if err == nil || errors.Is(err, errPartial) {
		return
	}
	line := "strandline: " + visible(oneLine(err.Error()))
	if code == 2 {
		line += "; see `" + command + " --help`"
	}
	fmt.Fprintln(w, line)
}

// isClosedPipe says that the reader of stdout has gone, as in `consume | head`: not an error of ours.
func isClosedPipe(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed)
}
