package auth

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"strandline.dev/internal/auth/certs"
)

// JudgeServed refuses an identity that clients would refuse. ask says that their certificates are judged by its CA.
func JudgeServed(ask bool) func(*certs.Set) error {
	return func(s *certs.Set) error {
		switch {
		case time.Now().After(s.Expires):
			return fmt.Errorf("the certificate has expired on %s", s.Expires.UTC().Format(time.DateTime))
		case ask && s.CA == nil:
			return errors.New("CA: there is none for the certificates of clients")
		}
		return nil
	}
}

// ServerTLS is the accepting side of connections of clients, TLS 1.2 and 1.3, always with the newest identity.
func ServerTLS(source *certs.Source, ask tls.ClientAuthType) *tls.Config {
	type served struct {
		of     *certs.Set
		config *tls.Config
	}
	var made atomic.Pointer[served]
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := source.Set()
			s := made.Load()
			if s == nil || s.of != now { // one for all connections: it holds the keys of session tickets
				s = &served{now, &tls.Config{
					MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{now.Own}, ClientAuth: ask, ClientCAs: now.CA,
				}}
				made.Store(s)
			}
			return s.config, nil
		},
	}
}
