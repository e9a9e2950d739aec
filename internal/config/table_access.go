package config

import (
	"math"
	"strings"
	"time"

	"strandline.dev/internal/kafka"
)

// What a listener asks of a client's certificate, as Kafka's ssl.client.auth says it.
const (
	CertNone      = "none"
	CertRequested = "requested"
	CertRequired  = "required"
)

var certModes = []string{CertNone, CertRequested, CertRequired}

// SASLMechanisms are those that a listener can offer.
var SASLMechanisms = []string{"SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER"}

// accessTable lists the settings of strandline.yaml about who may come in and do what.
func accessTable() []Setting {
	return []Setting{
		{Name: "tls.cert", Type: String, Default: "",
			Doc:  "PEM file with the certificate shown to clients of listeners with tls and of http.tls, and what leads from it to its CA. Read again when it changes.",
			node: func(n *Node) any { return &n.TLS.Cert }},
		{Name: "tls.key", Type: String, Default: "",
			Doc:  "PEM file with the key of tls.cert.",
			node: func(n *Node) any { return &n.TLS.Key }},
		{Name: "tls.ca", Type: String, Default: "",
			Doc:  "PEM file with the CA of the certificates of clients, for listeners that ask for them.",
			node: func(n *Node) any { return &n.TLS.CA }},
		{Name: "tls.principal.rules", Type: String, Default: "DEFAULT",
			Doc:  "How the name in a client's certificate becomes its principal, by Kafka's rules: RULE:pattern/replacement/ with L or U for the case, comma-separated, the first that matches; DEFAULT takes the whole name.",
			node: func(n *Node) any { return &n.TLS.PrincipalRules }},
		{Name: "http.tls", Type: Bool, Default: "false",
			Doc:  "Whether the HTTP port speaks TLS, with tls.cert.",
			node: func(n *Node) any { return &n.HTTP.TLS }},
		{Name: "http.mtls", Type: String, Default: CertNone, Enum: certModes,
			Doc:  "Whether clients of the HTTP port show a certificate of tls.ca.",
			node: func(n *Node) any { return &n.HTTP.ClientCert }},
		{Name: "auth.super.users", Type: String, Default: "",
			Doc:  "Principals that may do everything, as User:NAME, separated by semicolons.",
			node: func(n *Node) any { return &n.Auth.SuperUsers }},
		{Name: "auth.users.file", Type: String, Default: "",
			Doc:  "File of users that are there before the cluster is, one a line, as NAME MECHANISM$ITERATIONS:SALT$STOREDKEY:SERVERKEY. Read again when it changes. The same on every node.",
			node: func(n *Node) any { return &n.Auth.UsersFile }},
		{Name: "auth.allow.if.no.acl", Type: Bool, Default: "false",
			Doc:  "Whether everybody may do what no ACL is about. ACLs count as soon as a listener authenticates its clients.",
			node: func(n *Node) any { return &n.Auth.AllowIfNoACL }},
		{Name: "auth.session.max", Type: Duration, Default: "0s", Min: 0, Max: math.MaxInt64,
			Doc:  "How long a client may go on before it authenticates anew on its connection (KIP-368); 0s for no limit but that of its token or certificate.",
			node: func(n *Node) any { return &n.Auth.SessionMax }},
		{Name: "auth.oauth.issuer", Type: String, Default: "",
			Doc:  "URL of the OpenID provider whose tokens OAUTHBEARER accepts.",
			node: func(n *Node) any { return &n.Auth.OAuth.Issuer }},
		{Name: "auth.oauth.audience", Type: String, Default: "",
			Doc:  "What a token's aud has to name.",
			node: func(n *Node) any { return &n.Auth.OAuth.Audience }},
		{Name: "auth.oauth.claim", Type: String, Default: "sub",
			Doc:  "The claim of a token that is the user's name.",
			node: func(n *Node) any { return &n.Auth.OAuth.Claim }},
		{Name: "auth.audit", Type: String, Default: AuditAuto, Enum: auditModes,
			Doc:  "Whether failed logins, denials and administrative changes are kept in the topic __strandline_audit; then nothing is changed that cannot be kept. auto: where a listener authenticates its clients. The same on every node.",
			node: func(n *Node) any { return &n.Auth.Audit }},
	}
}

// When there is an audit trail.
const (
	AuditAuto = "auto"
	AuditOn   = "on"
	AuditOff  = "off"
)

var auditModes = []string{AuditAuto, AuditOn, AuditOff}

// Audits says whether this node keeps an audit trail.
func (n Node) Audits() bool {
	return n.Auth.Audit == AuditOn || n.Auth.Audit != AuditOff && n.Authenticates()
}

// Auth is what strandline.yaml says about who may come in and do what.
type Auth struct {
	// SuperUsers are "User:a;User:b": Supers reads them.
	SuperUsers   string
	UsersFile    string
	AllowIfNoACL bool
	SessionMax   time.Duration
	Audit        string
	OAuth        struct{ Issuer, Audience, Claim string }
}

// Authenticates says whether the listener finds out who its clients are.
func (l Listener) Authenticates() bool { return len(l.SASL) > 0 || l.ClientCert == CertRequired }

// Authenticates says whether any listener finds out who its clients are. Then ACLs decide what they may do.
func (n Node) Authenticates() bool {
	for _, l := range n.Listeners {
		if len(l.SASL) > 0 || l.asks() {
			return true
		}
	}
	return false
}

// asks says whether clients may show a certificate.
func (l Listener) asks() bool { return asksCert(l.ClientCert) }

func asksCert(mode string) bool { return mode == CertRequested || mode == CertRequired }

// HasTLS says whether anything shows tls.cert.
func (n Node) HasTLS() bool {
	for _, l := range n.Listeners {
		if l.TLS {
			return true
		}
	}
	return n.HTTP.TLS && n.HasHTTP()
}

// Supers are the principals of auth.super.users; ok is false when one of them is none.
func (n Node) Supers() (out []kafka.Principal, ok bool) {
	ok = true
	for one := range strings.SplitSeq(n.Auth.SuperUsers, ";") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		kind, name, hasName := strings.Cut(one, ":")
		ok = ok && hasName && kind == "User" && name != ""
		out = append(out, kafka.Principal{Type: kind, Name: name})
	}
	return out, ok
}

// validateAccess checks that what is asked for can be given, and that nothing looks like a protection and is none (C108).
func (n Node) validateAccess(fault faultFunc) {
	for i, l := range n.Listeners {
		key := listenerKey(i)
		switch {
		case l.asks() && !l.TLS:
			fault(key+".mtls", l.ClientCert, "asks for certificates without tls", "none, or tls: true")
		case l.asks() && n.TLS.CA == "":
			fault("tls.ca", "", "is not set, and listener "+l.Name+" asks for certificates of it", "a PEM file")
		}
		for _, m := range l.SASL {
			if m == "OAUTHBEARER" && (n.Auth.OAuth.Issuer == "" || n.Auth.OAuth.Audience == "") {
				fault("auth.oauth.issuer", n.Auth.OAuth.Issuer, "and auth.oauth.audience are not both set, and listener "+l.Name+" offers OAUTHBEARER", "a URL, and the audience of the tokens")
			}
		}
	}
	if n.HTTP.TLS && asksCert(n.HTTP.ClientCert) && n.TLS.CA == "" {
		fault("tls.ca", "", "is not set, and http.mtls asks for certificates of it", "a PEM file")
	}
	if !n.HTTP.TLS && asksCert(n.HTTP.ClientCert) {
		fault("http.mtls", n.HTTP.ClientCert, "asks for certificates without http.tls", "none, or http.tls: true")
	}
	for _, f := range []struct{ key, value string }{{"tls.cert", n.TLS.Cert}, {"tls.key", n.TLS.Key}} {
		if f.value == "" && n.HasTLS() {
			fault(f.key, "", "is not set, and a listener has tls", "a PEM file")
		}
	}
	if _, ok := n.Supers(); !ok {
		fault("auth.super.users", n.Auth.SuperUsers, "has something that is no principal", "User:NAME, separated by semicolons")
	}
	if n.Authenticates() {
		return
	}
	for _, f := range []struct {
		key, value string
		set        bool
	}{
		{"auth.super.users", n.Auth.SuperUsers, n.Auth.SuperUsers != ""}, {"auth.users.file", n.Auth.UsersFile, n.Auth.UsersFile != ""},
		{"auth.allow.if.no.acl", "true", n.Auth.AllowIfNoACL},
	} {
		if f.set {
			fault(f.key, f.value, "protects nothing: no listener has sasl or mtls, so nobody knows who a client is and everybody may do everything", "sasl on a listener")
		}
	}
}
