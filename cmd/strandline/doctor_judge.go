package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"strandline.dev/internal/plan"
)

// What a client bears, and from where on it is said.
const (
	// skewMax is the difference between two clocks that is borne: record times, tokens and retention do not depend on less.
	skewMax = time.Second
	// certificateWarn is how long before its end a certificate is spoken of.
	certificateWarn = 21 * 24 * time.Hour
	// diskWarnPart is the free part of a disk below which it is spoken of.
	diskWarnPart = 0.1
	// diskReserve is what a node keeps free at least, as long as its disk is not tiny: twice its reserve file (docs/operating/one-node.md).
	diskReserve = 2 * 64 << 20
	// filesWarnPart is the used part of the open files that are allowed from which on it is spoken of.
	filesWarnPart = 0.8
)

// judged collects findings.
type judged []finding

// spot is what was looked at.
type spot struct{ check, where string }

func (j *judged) say(state string, at spot, fix, format string, args ...any) {
	*j = append(*j, finding{Check: at.check, Where: at.where, State: state, Detail: fmt.Sprintf(format, args...), Fix: fix})
}

// diagnose judges what was found out, in the order in which causes come before their effects.
func diagnose(c checkup) diagnosis {
	var j judged
	for _, p := range c.named {
		j.listener(&c, p)
	}
	if len(c.told) > 0 {
		j.advertised(&c)
		j.certificates(&c)
		j.versions(&c)
		j.clocks(&c)
		j.disks(&c)
		j.limits(&c)
		j.replication(&c)
	}
	d := diagnosis{OK: true, Findings: j}
	for _, f := range j {
		d.OK = d.OK && f.State != stateWrong
	}
	return d
}

// listener is about an address that a person gave.
func (j *judged) listener(c *checkup, p *probe) {
	switch why, fix := unreached(c, p); {
	case why == "" && p.clusterID != c.cluster():
		j.say(stateWrong, spot{"listener", p.address}, "name brokers of one cluster", "it is of another cluster, %s, than the one named before, %s", p.clusterID, c.cluster())
	case why == "" && len(p.brokers) == 0:
		j.say(stateWrong, spot{"listener", p.address}, "see `strandline cluster health`, and the node's /readyz", "it answers, and knows of no broker that clients can use")
	case why == "":
		j.say(stateOK, spot{"listener", p.address}, "", "%s answers", nodeAt(p))
	case p.dialErr != nil:
		j.say(stateWrong, spot{"listener", p.address}, cmp.Or(fix, "start the broker, or name another address with --brokers host:port"), "%s", why)
	default:
		j.say(stateWrong, spot{"listener", p.address}, fix, "%s", why)
	}
}

func nodeAt(p *probe) string {
	if p.is < 0 {
		return "a broker"
	}
	return fmt.Sprintf("node %d", p.is)
}

// unreached says why there is no Kafka at an address, and what to change at the client; "" when there is.
func unreached(c *checkup, p *probe) (why, fix string) {
	var dns *net.DNSError
	var slow net.Error
	var record tls.RecordHeaderError
	var unknown x509.UnknownAuthorityError
	var wrongName x509.HostnameError
	var invalid x509.CertificateInvalidError
	err := cmp.Or(p.dialErr, p.err)
	switch {
	case err == nil:
		return "", ""
	case errors.As(err, &dns):
		return "this machine knows no address of " + dns.Name, ""
	case p.dialErr != nil && errors.As(err, &slow) && slow.Timeout():
		return "no connection within the time: a firewall, or the wrong address", ""
	case p.dialErr != nil:
		return reason(err), ""
	case p.speaksTLS && !c.settings.tls:
		return "the listener speaks TLS, and this client does not", "give -X tls=true, and -X tls.ca=FILE unless this machine trusts its CA"
	case errors.As(err, &record), c.settings.tls && !p.speaksTLS:
		return "the listener does not speak TLS, and this client does", "leave out -X tls=true, or set `tls: true` for the listener"
	case errors.As(err, &unknown):
		return "the certificate is of a CA that this client does not trust", "give -X tls.ca=FILE with the CA of the brokers"
	case errors.As(err, &wrongName):
		return "the certificate does not speak for this address: " + wrongName.Error(), "issue tls.cert for this name, or connect by a name that it has"
	case errors.As(err, &invalid):
		return "the certificate is not valid: " + invalid.Error(), "issue a new tls.cert; the node reads it without a restart"
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return reason(err), "see -X user, and the password; `auth.users.file` of the node names its users"
	}
	return "something listens, but it does not answer as a Kafka broker that takes this client: " + reason(err),
		"see that the port is that of a Kafka listener, and whether the listener wants tls or sasl (-X tls=true, -X user=NAME)"
}

// advertised is about the addresses that brokers give to clients: a client goes on with these, whatever it was given first.
func (j *judged) advertised(c *checkup) {
	for _, p := range c.told {
		where := fmt.Sprintf("node %d at %s", p.node, p.address)
		host, _, _ := net.SplitHostPort(p.address)
		ip := net.ParseIP(host)
		why, client := unreached(c, p)
		switch {
		case host == "" || ip != nil && ip.IsUnspecified():
			j.say(stateWrong, spot{"advertise", where}, c.advertiseFix(p), "clients are told an address that is none")
		case why != "" && c.isDown(p.node):
			j.say(stateWrong, spot{"advertise", where}, fmt.Sprintf("start node %d", p.node), "%s; the cluster counts the node as down", why)
		case why != "" && (p.dialErr != nil || client == ""):
			j.say(stateWrong, spot{"advertise", where}, c.advertiseFix(p), "clients are sent there, and cannot get there from this machine: %s", why)
		case why != "":
			j.say(stateWrong, spot{"advertise", where}, client, "clients are sent there: %s", why)
		case p.clusterID != c.cluster():
			j.say(stateWrong, spot{"advertise", where}, c.advertiseFix(p), "another cluster, %s, answers there", p.clusterID)
		case p.is >= 0 && p.is != p.node:
			j.say(stateWrong, spot{"advertise", where}, c.advertiseFix(p), "node %d answers there", p.is)
		case p.is < 0:
			j.say(stateUnknown, spot{"advertise", where}, "", "a broker answers there; which one is not told to this user")
		default:
			j.say(stateOK, spot{"advertise", where}, "", "the node answers there")
		}
	}
}

// cluster is the cluster of the first named address that answered.
func (c *checkup) cluster() string {
	for _, p := range c.named {
		if p.err == nil && p.dialErr == nil {
			return p.clusterID
		}
	}
	return ""
}

// isDown says that the cluster itself does not count on a node.
func (c *checkup) isDown(node int32) bool {
	if c.view == nil {
		return false
	}
	n := c.view.node(node)
	return n == nil || n.Fenced
}

// advertiseFix is the line that leads clients to a node: the address by which it was reached, if it was named.
func (c *checkup) advertiseFix(p *probe) string {
	address := "HOST:PORT, where this machine reaches it,"
	for _, n := range c.named {
		if n.is == p.node && n.err == nil && n.dialErr == nil {
			address = n.address
		}
	}
	return fmt.Sprintf("in the file of node %d set `advertise: %s` for this listener (the first one: --listeners-0-advertise %s), and start it again",
		p.node, address, address)
}

// certificates are those of all addresses with TLS, each once.
func (j *judged) certificates(c *checkup) {
	var seen []string
	for _, p := range slices.Concat(c.named, c.told) {
		if p.certificate == nil || p.err != nil || slices.Contains(seen, p.address) {
			continue
		}
		seen = append(seen, p.address)
		end := p.certificate.NotAfter
		if left := time.Until(end); left < certificateWarn {
			j.say(stateWarning, spot{"tls", p.address}, "issue a new tls.cert; the node reads it without a restart", "the certificate ends on %s, in %s",
				end.UTC().Format(time.DateOnly), plan.Time(left.Round(time.Minute)))
			continue
		}
		j.say(stateOK, spot{"tls", p.address}, "", "the certificate is trusted and lasts until %s", end.UTC().Format(time.DateOnly))
	}
	if len(seen) == 0 && !c.settings.tls && !c.local() {
		j.say(stateWarning, spot{"tls", "this client"}, "set `tls: true` for the listeners, and give -X tls=true", "records and passwords go over the network in plain text")
	}
}

// local says that all brokers are on this machine.
func (c *checkup) local() bool {
	return !slices.ContainsFunc(slices.Concat(c.named, c.told), func(p *probe) bool {
		return !isLoopback(p.address)
	})
}

// reached are the nodes that answer where clients are sent or, where that is wrong, at an address that was named.
func (c *checkup) reached() []*probe {
	var out []*probe
	for _, p := range c.told {
		if p.err == nil && p.dialErr == nil {
			out = append(out, p)
			continue
		}
		for _, n := range c.named {
			if n.is == p.node && n.err == nil && n.dialErr == nil {
				there := *n
				there.node = p.node
				out = append(out, &there)
				break
			}
		}
	}
	return out
}

// versions are the same everywhere, except while nodes are being replaced one by one.
func (j *judged) versions(c *checkup) {
	all := c.reached()
	if len(all) == 0 {
		return
	}
	for _, p := range all[1:] {
		if key, differs := differing(all[0], p); differs {
			j.say(stateWarning, spot{"versions", fmt.Sprintf("node %d", p.node)}, "run the same release everywhere, and see strandline.protocol.cap",
				"it does not serve the same as node %d, first in API key %d", all[0].node, key)
			return
		}
	}
	j.say(stateOK, spot{"versions", fmt.Sprintf("%d nodes", len(all))}, "", "all serve the same %d APIs in the same versions", len(all[0].apis))
}

// differing is the first API key in which two nodes differ.
func differing(x, y *probe) (int16, bool) {
	for key := int16(0); key < 256; key++ {
		a, has := x.apis[key]
		b, also := y.apis[key]
		if has != also || a.MinVersion != b.MinVersion || a.MaxVersion != b.MaxVersion {
			return key, true
		}
	}
	return 0, false
}
