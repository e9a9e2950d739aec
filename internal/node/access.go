package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/config"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/server"
	"strandline.dev/internal/sys"
)

const (
	// rereadEvery is how often the file of users is read again.
	rereadEvery = 3 * time.Second
	// usersBytesMax bounds that file; a user takes some 250 bytes.
	usersBytesMax = 1 << 20
)

// access is what this node knows about who may come in and do what.
type access struct {
	shown         *certs.Source // to clients; nil: nothing speaks TLS to them
	names         *auth.NameRules
	authorizer    *auth.Authorizer
	authenticator *auth.Authenticator
}

// openAccess reads what the configuration names, and keeps reading it.
func (n *Node) openAccess(ctx context.Context) error {
	c, a := n.o.Config, &n.access
	if c.HasTLS() {
		var err error
		files := certs.Files{Setting: "tls", Cert: c.TLS.Cert, Key: c.TLS.Key, CA: c.TLS.CA}
		if a.shown, err = certs.Open(n.o.Machine.FS, files, auth.JudgeServed(c.TLS.CA != "")); err != nil {
			return err
		}
		n.metrics.CertificateExpiry("clients", func() float64 { return a.shown.Left(time.Now()).Seconds() })
		n.stops = append(n.stops, n.background(ctx, "certificates", func(ctx context.Context) error { a.shown.Watch(ctx, n.log); return nil }))
	}
	var err error
	if a.names, err = auth.ParseNameRules(c.TLS.PrincipalRules); err != nil {
		return fmt.Errorf("tls.principal.rules: %w", err)
	}
	supers, _ := c.Supers()
	a.authorizer = auth.NewAuthorizer(n.accessImage, auth.Options{Enforced: c.Authenticates(), Supers: supers, AllowIfNone: c.Auth.AllowIfNoACL})
	var tokens *auth.Tokens
	if o := c.Auth.OAuth; o.Issuer != "" {
		tokens = auth.NewTokens(auth.TokenConfig{Issuer: o.Issuer, Audience: o.Audience, Claim: o.Claim, Dial: n.o.Machine.Net.Dial})
	}
	a.authenticator = auth.NewAuthenticator(n.accessImage, tokens)
	if c.Auth.UsersFile != "" {
		if err := n.readUsers(); err != nil {
			return err
		}
	}
	if c.Auth.UsersFile != "" {
		n.stops = append(n.stops, n.background(ctx, "users", n.rereadUsers))
	}
	return nil
}

// accessImage is the newest Image, an empty one before there is any.
func (n *Node) accessImage() *metadata.Image {
	if n.quorum == nil {
		return metadata.Empty()
	}
	return n.quorum.Image()
}

// readUsers reads the file of users.
func (n *Node) readUsers() error {
	path := n.o.Config.Auth.UsersFile
	text, err := sys.ReadFile(n.o.Machine.FS, path, usersBytesMax)
	if err == nil {
		var users *auth.Users
		if users, err = auth.ParseUsers(text); err == nil {
			n.access.authenticator.SetUsers(users)
			return nil
		}
	}
	return fmt.Errorf("auth.users.file %s: %w", path, err)
}

// rereadUsers reads the file of users again and again. A bad file is named once, and what was read before stays in force.
func (n *Node) rereadUsers(ctx context.Context) error {
	look := time.NewTicker(rereadEvery)
	defer look.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
		}
		wrong := ""
		if err := n.readUsers(); err != nil {
			wrong = err.Error()
		}
		if wrong != "" && wrong != said {
			n.log.Error("the changed file of users is not taken; what was read before stays in force", "error", wrong)
		}
		said = wrong
	}
}

// door is what a listener asks of its clients.
func (n *Node) door(l config.Listener) server.Door {
	d := server.Door{SASL: l.SASL}
	if l.TLS {
		d.TLS = auth.ServerTLS(n.access.shown, clientAuth(l.ClientCert))
	}
	if l.ClientCert == config.CertRequested || l.ClientCert == config.CertRequired {
		d.Names = n.access.names
	}
	return d
}

func clientAuth(mode string) tls.ClientAuthType {
	switch mode {
	case config.CertRequested:
		return tls.VerifyClientCertIfGiven
	case config.CertRequired:
		return tls.RequireAndVerifyClientCert
	}
	return tls.NoClientCert
}
