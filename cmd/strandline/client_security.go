package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"strandline.dev/internal/auth"
)

// securityKnobs are the client settings by which brokers and client prove to each other who they are.
var securityKnobs = []knob{
	{"tls", "STRANDLINE_CLIENT_TLS", "false"},
	{"tls.ca", "STRANDLINE_CLIENT_TLS_CA", ""},
	{"tls.cert", "STRANDLINE_CLIENT_TLS_CERT", ""},
	{"tls.key", "STRANDLINE_CLIENT_TLS_KEY", ""},
	{"sasl.mechanism", "STRANDLINE_CLIENT_SASL_MECHANISM", auth.Scram512},
	{"user", "STRANDLINE_CLIENT_USER", ""},
	{"password", "STRANDLINE_CLIENT_PASSWORD", ""},
}

// securityOptions are the client's options for the values of securityKnobs. Errors never show the password.
func securityOptions(value map[string]string) ([]kgo.Opt, error) {
	var opts []kgo.Opt
	named := value["tls.ca"] != "" || value["tls.cert"] != "" || value["tls.key"] != ""
	switch value["tls"] {
	case "true":
		c, err := clientTLS(value)
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.DialTLSConfig(c))
	case "false":
		if named {
			return nil, usagef("tls.ca, tls.cert and tls.key need tls=true")
		}
	default:
		return nil, usagef("tls %q: want true or false", value["tls"])
	}
	user, password := value["user"], value["password"]
	if user == "" && password == "" {
		return opts, nil
	}
	if user == "" || password == "" {
		return nil, usagef("user and password go together; the password is best given in STRANDLINE_CLIENT_PASSWORD or a profile")
	}
	switch m := value["sasl.mechanism"]; m {
	case auth.Scram512:
		return append(opts, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism())), nil
	case auth.Scram256:
		return append(opts, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha256Mechanism())), nil
	case auth.Plain:
		return append(opts, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism())), nil
	default:
		return nil, usagef("sasl.mechanism %q: want %s, %s or %s", m, auth.Scram512, auth.Scram256, auth.Plain)
	}
}

// clientTLS trusts the CA that is named, else those of the machine.
func clientTLS(value map[string]string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if path := value["tls.ca"]; path != "" {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, usagef("tls.ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, usagef("tls.ca: no certificate in %s", path)
		}
	}
	if value["tls.cert"] != "" || value["tls.key"] != "" {
		own, err := tls.LoadX509KeyPair(value["tls.cert"], value["tls.key"])
		if err != nil {
			return nil, usagef("tls.cert and tls.key: %w", err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}
