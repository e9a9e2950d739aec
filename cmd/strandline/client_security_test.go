package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/auth/certs/certstest"
	"strandline.dev/internal/config"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/node"
	"strandline.dev/internal/sys"
)

// Over TLS and SCRAM the command line does what its user may: a super user of the node's file makes a topic, a stranger and a wrong password do not,
// and nobody gets in without TLS (R147, R148).
func TestR148_CommandLineOverSASLAndTLS(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p := certstest.NewAuthority(t, "ca").Issue(certstest.Wanted{Name: "node", Hosts: []string{"127.0.0.1"}})
	admin, err := auth.NewScram("admin", "secret", metadata.ScramSHA512)
	if err != nil {
		t.Fatal(err)
	}
	other, err := auth.NewScram("other", "secret", metadata.ScramSHA512)
	if err != nil {
		t.Fatal(err)
	}
	ca := file("ca.pem", p.CA)
	c, err := config.Build(map[string]string{
		"node.id": "1", "data.dir": filepath.Join(dir, "data"), "http.address": config.NoHTTP,
		"listeners.0.name": "clients", "listeners.0.address": "127.0.0.1:0", "listeners.0.tls": "true", "listeners.0.sasl": "SCRAM-SHA-512",
		"tls.cert": file("cert.pem", p.Cert), "tls.key": file("key.pem", p.Key),
		"auth.users.file": file("users", []byte(auth.UserLine(admin)+"\n"+auth.UserLine(other)+"\n")), "auth.super.users": "User:admin",
	}, false)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	n, err := node.Start(ctx, node.Options{Config: c, Machine: sys.Real(), Log: newLogger(c, new(bytes.Buffer))})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Stop(ctx)
	for _, one := range []struct {
		name, user, password, tls string
		want                      string // on stderr; "" for success
	}{
		{"wrong", "admin", "wrong", "true", "refused the login: SASL_AUTHENTICATION_FAILED"},
		{"stranger", "nobody", "secret", "true", "SASL_AUTHENTICATION_FAILED"},
		{"unentitled", "other", "secret", "true", "TOPIC_AUTHORIZATION_FAILED"},
		{"plaintext", "admin", "secret", "false", "cannot"},
		{"made", "admin", "secret", "true", ""},
	} {
		a := newApp()
		var out, errOut bytes.Buffer
		a.stdin, a.stdout, a.stderr = strings.NewReader(""), &out, &errOut
		a.lookup = func(name string) (string, bool) {
			v, ok := map[string]string{"STRANDLINE_CLIENT_PASSWORD": one.password}[name]
			return v, ok
		}
		a.configDir = func() (string, error) { return dir, nil }
		args := []string{"topic", "create", one.name, "-p", "1", "-r", "1", "--brokers", n.KafkaAddresses()[0], "-X", "user=" + one.user, "-X", "timeout=5s", "-X", "tls=" + one.tls}
		if one.tls == "true" {
			args = append(args, "-X", "tls.ca="+ca)
		}
		code := run(args, a)
		if ok := one.want == ""; ok != (code == 0) || !strings.Contains(errOut.String(), one.want) || strings.Contains(errOut.String(), one.password) {
			t.Errorf("%s: exit %d, %s%s", one.name, code, out.String(), errOut.String())
		}
		if made := n.Image().Topic(one.name) != nil; made != (one.want == "") {
			t.Errorf("%s: the topic is there: %v", one.name, made)
		}
	}
}
