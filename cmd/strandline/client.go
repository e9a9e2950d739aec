package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// cliSoftware is what brokers are told about this client.
const cliSoftware = "strandline-cli"

// session is a connection to the brokers a person named.
type session struct {
	settings
	client *kgo.Client
	admin  *kadm.Client
	dials  *dialWatch
	seeds  []string // of the named brokers, those that are asked
	spoke  int      // which of them answered last
}

// connect makes a session; nothing is dialled before the first request.
func (a *app) connect(more ...kgo.Opt) (*session, error) {
	s, err := a.settings()
	if err != nil {
		return nil, err
	}
	return openSession(s, more...)
}

func openSession(s settings, more ...kgo.Opt) (*session, error) {
	watch := &dialWatch{}
	s.brokers = answering(s.brokers, min(dialTimeoutMax, s.timeout))
	opts := []kgo.Opt{
		kgo.SeedBrokers(s.brokers...),
		kgo.ClientID(s.clientID),
		kgo.SoftwareNameAndVersion(cliSoftware, softwareVersion()),
		kgo.DisableClientMetrics(), // a command line sends nobody telemetry
		kgo.DialTimeout(min(dialTimeoutMax, s.timeout)),
		kgo.RequestRetries(requestRetriesMax),
		kgo.RetryTimeout(s.serverTime()),
		kgo.RequestTimeoutOverhead(max(s.timeout/askedMax, answerMin)),
		kgo.MetadataMinAge(retryPause),
		kgo.WithHooks(watch),
	}
	client, err := kgo.NewClient(append(append(opts, s.security...), more...)...)
	if err != nil {
		return nil, usageError{err}
	}
	admin := kadm.NewClient(client)
	admin.SetTimeoutMillis(s.serverMillis())
	return &session{settings: s, client: client, admin: admin, dials: watch, seeds: s.brokers}, nil
}

// talkTo has these of the named brokers asked, and no others.
func (s *session) talkTo(brokers ...string) error {
	s.seeds, s.spoke = brokers, 0
	return s.client.UpdateSeedBrokers(brokers...)
}

// serverTime is what a broker gets of the time for one exchange: less than all, so that its own account of why it could not is heard.
func (s settings) serverTime() time.Duration { return s.timeout - min(s.timeout/5, time.Second) }

func (s settings) serverMillis() int32 { return int32(s.serverTime().Milliseconds()) }

// answering are those of the addresses where somebody listens, so that one that is down costs nothing where another is up. When none does, all stay:
// the client will say why.
func answering(addresses []string, patience time.Duration) []string {
	if len(addresses) < 2 {
		return addresses
	}
	heard := make(chan string, len(addresses))
	for _, a := range addresses {
		go func() {
			nc, err := net.DialTimeout("tcp", a, patience)
			if err != nil {
				a = ""
			} else {
				_ = nc.Close()
			}
			heard <- a
		}()
	}
	up := map[string]bool{}
	var others <-chan time.Time
	for range addresses {
		select {
		case a := <-heard:
			if a != "" {
				up[a] = true
				if others == nil {
					others = time.After(otherSeedsMax)
				}
			}
			continue
		case <-others:
		}
		break
	}
	if len(up) == 0 {
		return addresses
	}
	return slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return !up[a] })
}

// namedBrokers asks the brokers that a person named, one after the other, who answered last first. The client would ask any that the cluster counts
// on, and without a controller that may be one that is down.
type namedBrokers struct{ *session }

func (s *session) named() namedBrokers { return namedBrokers{s} }

// Request returns the first answer. Each broker gets its share of the time that is left, at first no more than firstAskMax: those that take a question
// and do not answer leave the others theirs, and the questions after this one too.
func (n namedBrokers) Request(ctx context.Context, req kmsg.Request) (resp kmsg.Response, err error) {
	seeds := n.client.SeedBrokers()
	tries := 2 * len(seeds)
	if len(seeds) == 1 {
		tries = 1
	}
	for i := range tries {
		at := (n.spoke + i) % len(seeds)
		most := firstAskMax
		if i >= tries/2 {
			most = n.timeout // its whole share
		}
		one, cancel := share(ctx, tries-i, most)
		resp, err = seeds[at].RetriableRequest(one, req)
		cancel()
		if err == nil {
			n.spoke = at
			return resp, nil
		}
	}
	return nil, err
}

// firstAskMax bounds the first question to one of several brokers; a second one has what time is left.
const firstAskMax = 1500 * time.Millisecond

// share is an n-th of the time that ctx has left, and no more than most.
func share(ctx context.Context, n int, most time.Duration) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		most = min(most, time.Until(end)/time.Duration(n))
	}
	return context.WithTimeout(ctx, most)
}

func (s *session) close() { s.client.Close() }

// bounded is the context of one exchange with the brokers.
func (s *session) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.timeout)
}

// explain turns an error of an exchange into what a person needs: when the brokers cannot be reached at all, their address and the
// reason; otherwise what failed and why.
func (s *session) explain(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	address, cause, down := s.dials.down()
	var op *net.OpError
	isMute := down && errors.As(cause, &op) && op.Op != "dial" && op.Timeout() // it took the connection, and then said nothing
	if down && !isMute && !errors.Is(err, context.Canceled) {
		if errors.Is(cause, kerr.SaslAuthenticationFailed) {
			return &failure{what: "the broker at " + address + " refused the login", why: cause, todo: "check user, password and sasl.mechanism"}
		}
		if !errors.As(cause, &op) || op.Op != "dial" {
			return &failure{
				what: "cannot talk to " + address, why: cause,
				todo: "see whether the broker runs, whether this is its port for Kafka clients, and whether that takes TLS and a login " +
					"(--profile FILE, or -X tls, tls.ca, user, password)",
			}
		}
		return &failure{
			what: "cannot reach the broker at " + address, why: cause,
			todo: "start one with `strandline dev`, or name yours with --brokers host:port",
		}
	}
	if isMute || errors.Is(err, context.DeadlineExceeded) {
		return &failure{
			what: fmt.Sprintf(format, args...),
			why:  fmt.Errorf("no answer from %s within %v", strings.Join(s.brokers, ", "), s.timeout),
			todo: "see whether the broker is alive, or give -X timeout=30s",
		}
	}
	return failf(err, format, args...)
}

// dialWatch remembers whether the last attempt to connect failed, and since when all have.
type dialWatch struct {
	mu      sync.Mutex
	address string
	cause   error
	since   time.Time
}

var _ kgo.HookBrokerConnect = (*dialWatch)(nil)

// OnBrokerConnect is called by the client after each attempt to connect.
func (d *dialWatch) OnBrokerConnect(meta kgo.BrokerMetadata, _ time.Duration, _ net.Conn, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.cause = nil
		return
	}
	if errors.Is(err, context.Canceled) {
		return
	}
	if d.cause == nil {
		d.since = time.Now()
	}
	d.address, d.cause = net.JoinHostPort(meta.Host, strconv.Itoa(int(meta.Port))), err
}

// down says that the last attempt to connect failed, to which address, and why.
func (d *dialWatch) down() (address string, cause error, down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.address, d.cause, d.cause != nil
}

// downFor says how long no attempt to connect has succeeded.
func (d *dialWatch) downFor() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cause == nil {
		return 0
	}
	return time.Since(d.since)
}

// completeTopics offers topic names to the shell. It answers fast or not at all: a shell that hangs on Tab is worse than none.
func (a *app) completeTopics(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	if len(args) > 0 {
		return nil, none
	}
	s, err := a.connect(kgo.RequestRetries(0))
	if err != nil {
		return nil, none
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	topics, err := s.admin.ListTopics(ctx)
	if err != nil {
		return nil, none
	}
	return topics.Names(), none
}
