package peer

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"strandline.dev/internal/metrics"
)

// The reasons for which a connection is refused; they are metric labels, so the set is closed.
const (
	reasonKafka       = "kafka_client"
	reasonHTTP        = "http"
	reasonTLS         = "tls"
	reasonFrame       = "frame"
	reasonSilent      = "no_hello"
	reasonVersion     = "version"
	reasonCluster     = "other_cluster"
	reasonExpected    = "other_node"
	reasonForming     = "forming"
	reasonAdmit       = "admit"
	reasonTooMany     = "too_many_connections"
	reasonDenied      = "denied_by_peer"
	reasonCertificate = "certificate"
)

// advice is what the operator should do.
var advice = map[string]string{
	reasonKafka:       "a Kafka client speaks to the cluster listener: give it an address of a node's listeners instead",
	reasonHTTP:        "an HTTP client speaks to the cluster listener: use the http address of this node instead",
	reasonTLS:         "one side uses TLS on the cluster listener and the other does not, or its certificate is not of the cluster's CA: compare tls.cluster.* on both nodes",
	reasonCluster:     "compare cluster.controllers and cluster.address of both nodes, or empty the data directory of the one that is to change clusters",
	reasonExpected:    "compare the addresses in cluster.controllers and cluster.address of all nodes",
	reasonCertificate: "a certificate speaks for the node named in it: give each node one with the URI strandline://node/<its node.id>",
	reasonVersion:     "bring both nodes to releases that speak the same version",
}

// lines writes one line about each refused address and reason, once in lineEvery: a peer that retries must not fill the disk.
type lines struct {
	log     *slog.Logger
	metrics *metrics.Peer

	mu   sync.Mutex
	last map[lineKey]time.Time
}

type lineKey struct{ who, why string }

func newLines(log *slog.Logger, m *metrics.Peer) *lines {
	return &lines{log: log, metrics: m, last: map[lineKey]time.Time{}}
}

// refused logs that the hello with an address was not accepted.
func (l *lines) refused(address, why, text string) {
	l.metrics.Refused.WithLabelValues(why).Inc()
	host, _, err := net.SplitHostPort(address)
	if err != nil || why == reasonDenied {
		host = address // an address we dial is one line each; a dialler's port means nothing
	}
	if !l.due(lineKey{host, why}, time.Now()) {
		return
	}
	level := slog.LevelWarn
	if why == reasonForming {
		level = slog.LevelDebug
	}
	args := []any{"address", address, "reason", why, "why", text}
	if a := advice[why]; a != "" {
		args = append(args, "fix", a)
	}
	l.log.Log(context.Background(), level, "connection between nodes refused", args...)
}

// odd logs that an accepted node does something unexpected.
func (l *lines) odd(who Identity, text string) {
	if l.due(lineKey{who.Node.String(), text}, time.Now()) {
		l.log.Warn("unexpected message of another node", "peer", who.Node, "what", text)
	}
}

// due says whether a line is to be written, and remembers it.
func (l *lines) due(key lineKey, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.last[key]; ok && now.Sub(last) < lineEvery {
		return false
	}
	if len(l.last) >= linesMax {
		clear(l.last)
	}
	l.last[key] = now
	return true
}
