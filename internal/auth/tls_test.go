package auth

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/auth/certs/certstest"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// servedFiles is a server whose certificate is in files that are watched, in a bubble.
type servedFiles struct {
	t      *testing.T
	fs     *systest.FS
	ca     *certstest.Authority
	config *tls.Config
	source *certs.Source
}

func (s *servedFiles) write(name string, data []byte) {
	s.t.Helper()
	if err := sys.WriteFileAtomic(s.fs, "/pem/"+name, data); err != nil {
		s.t.Fatal(err)
	}
}

// connect does a handshake with the server and returns the name in its certificate.
func (s *servedFiles) connect() (string, error) {
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		defer there.Close()
		_ = tls.Server(there, s.config).HandshakeContext(s.t.Context())
	}()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.ca.PEM())
	c := tls.Client(here, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", SessionTicketsDisabled: true})
	if err := c.HandshakeContext(s.t.Context()); err != nil {
		return "", err
	}
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName, nil
}

// TestSecurity4_FilesAreReplacedUnderLoad: while clients connect all the time, the files of the certificate become bad in every way and good again. No
// client fails: each is shown the certificate that was good last.
func TestSecurity4_FilesAreReplacedUnderLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &servedFiles{t: t, fs: systest.NewFS(1), ca: certstest.NewAuthority(t, "ca")}
		issue := func(name string) certs.PEM {
			return s.ca.Issue(certstest.Wanted{Name: name, Hosts: []string{"127.0.0.1"}})
		}
		if err := s.fs.MkdirAll("/pem", 0o700); err != nil {
			t.Fatal(err)
		}
		p := issue("first")
		s.write("cert", p.Cert)
		s.write("key", p.Key)
		var err error
		if s.source, err = certs.Open(s.fs, certs.Files{Setting: "tls", Cert: "/pem/cert", Key: "/pem/key"}, JudgeServed(false)); err != nil {
			t.Fatal(err)
		}
		s.config = ServerTLS(s.source, tls.NoClientCert)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() { s.source.Watch(ctx, slog.New(slog.DiscardHandler)) })
		for range 4 {
			all.Go(func() {
				for ctx.Err() == nil {
					if name, err := s.connect(); err != nil || !strings.HasPrefix(name, "first") && !strings.HasPrefix(name, "second") {
						t.Errorf("a client is shown %q: %v", name, err)
						return
					}
					time.Sleep(time.Second)
				}
			})
		}
		s.replaceInBubble(issue)
		stop()
		all.Wait()
	})
}

// replaceInBubble makes the files bad, one way after the other, and then good.
func (s *servedFiles) replaceInBubble(issue func(name string) certs.PEM) {
	first, second := s.source.Set(), issue("second")
	expired := s.ca.Issue(certstest.Wanted{Name: "expired", From: time.Now().Add(-9 * time.Hour), Until: time.Now().Add(-time.Hour)})
	for _, bad := range []certs.PEM{
		{Cert: second.Cert[:len(second.Cert)/2], Key: second.Key},              // half written
		{Cert: second.Cert, Key: second.Key[:len(second.Key)/2]},               // the other half
		{Cert: second.Cert, Key: issue("third").Key},                           // one of two replaced
		{Cert: expired.Cert, Key: expired.Key}, {}, {Cert: []byte("password")}, // useless, empty, something else
	} {
		s.write("cert", bad.Cert)
		s.write("key", bad.Key)
		time.Sleep(5 * time.Second)
		if s.source.Set() != first {
			s.t.Errorf("%q is in use", s.source.Set().Own.Leaf.Subject.CommonName)
		}
	}
	if err := s.fs.Remove("/pem/key"); err != nil {
		s.t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	s.write("cert", second.Cert)
	s.write("key", second.Key)
	time.Sleep(5 * time.Second)
	if name, err := s.connect(); name != "second" || err != nil {
		s.t.Errorf("after good files a client is shown %q: %v", name, err)
	}
}
