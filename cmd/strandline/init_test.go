package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/config/load"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/peer"
)

// freePorts returns a port that is free, with those that lie portStep and twice portStep above it.
func freePorts(t *testing.T) int {
	free := func(port int) bool {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		return err == nil && l.Close() == nil
	}
	for range demoPortTries {
		port := demoPortMin + rand.IntN(demoPortEnd-demoPortMin)
		if free(port) && free(port+portStep) && free(port+2*portStep) {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}

// command runs one command line of a person whose settings are empty, and returns what it printed. What comes before the command, NAME=VALUE, is in the
// environment.
func command(t *testing.T, stdin string, args ...string) (code int, out, errOut string) {
	t.Helper()
	environment := map[string]string{}
	for len(args) > 0 {
		name, value, ok := strings.Cut(args[0], "=")
		if !ok {
			break
		}
		environment[name], args = value, args[1:]
	}
	var o, e bytes.Buffer
	a := newApp()
	a.stdin, a.stdout, a.stderr = strings.NewReader(stdin), &o, &e
	a.lookup = func(name string) (string, bool) { v, ok := environment[name]; return v, ok }
	nowhere := t.TempDir()
	a.configDir = func() (string, error) { return nowhere, nil }
	code = run(args, a)
	return code, o.String(), e.String()
}

// R155: what init makes is a cluster that is locked down: three processes form it, the profile publishes and reads over TLS and SCRAM, and nothing else
// gets in: no plaintext, no wrong password, no user without a rule, no HTTP without a certificate or a password.
func TestR155_InitSecure(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secure dir")
	kafkaPort, httpPort := freePorts(t), freePorts(t)
	args := []string{"init", "--secure", dir, "--kafka-port", fmt.Sprint(kafkaPort), "--cluster-port", fmt.Sprint(freePorts(t)), "--http-port", fmt.Sprint(httpPort)}
	if code, out, errOut := command(t, "", args...); code != 0 || strings.Count(out, "\n") != 4 {
		t.Fatalf("exit %d: %s%s", code, out, errOut)
	}
	nodes := startSecured(t, dir)
	profile := filepath.Join(dir, "admin.yaml")
	as := func(args ...string) []string { return append(args, "--profile", profile) }
	for _, one := range []struct {
		stdin string
		args  []string
		code  int
		want  string // on stdout, or on stderr where the code is not 0
	}{
		{"", as("topic", "create", "orders", "-p", "3", "-r", "3"), 0, "orders"},
		{"paid\n", as("produce", "orders"), 0, ""},
		{"", as("consume", "orders", "-o", "start", "-n", "1"), 0, "paid"},
		{"", as("consume", "orders", "-o", "start", "-n", "1", "-g", "billing"), 0, "paid"},
		{"", as("acl", "explain", "--user", "shop", "--op", "write", "--resource", "topic:orders"), 0, "missing: strandline acl create"},
		{"open-sesame\n", as("user", "create", "shop", "--password-stdin"), 0, "created"},
		{"paid\n", as("STRANDLINE_CLIENT_PASSWORD=open-sesame", "produce", "orders", "-X", "user=shop"), 1, "TOPIC_AUTHORIZATION_FAILED"},
		{"", as("acl", "create", "--user", "shop", "--op", "write", "--resource", "topic:orders"), 0, "shop"},
		{"shipped\n", as("STRANDLINE_CLIENT_PASSWORD=open-sesame", "produce", "orders", "-X", "user=shop", "-X", "sasl.mechanism=PLAIN"), 0, ""},
		{"", as("STRANDLINE_CLIENT_PASSWORD=wrong", "topic", "list", "-X", "timeout=3s"), 1, "SASL_AUTHENTICATION_FAILED"},
		{"", []string{"topic", "list", "--brokers", "127.0.0.1:" + fmt.Sprint(kafkaPort), "-X", "timeout=3s"}, 1, "cannot"},
	} {
		code, out, errOut := command(t, one.stdin, one.args...)
		said := out
		if one.code != 0 {
			said = errOut
		}
		if code != one.code || !strings.Contains(said, one.want) {
			t.Fatalf("%q: exit %d, want %d and %q: %s%s", one.args, code, one.code, one.want, out, errOut)
		}
	}
	base := fmt.Sprintf("https://127.0.0.1:%d", httpPort+portStep)
	client := testSecuredHTTP(t, dir, base)
	exposed(t, dir, base, client)
	for _, n := range nodes {
		n.kill()
		unsaid(t, dir, n.log.String())
	}
}

// startSecured starts a process for each of three nodes and waits until all are ready.
func startSecured(t *testing.T, dir string) []*scriptBroker {
	nodes := make([]*scriptBroker, 3)
	ready := make(chan string, len(nodes))
	for i := range nodes {
		nodes[i] = &scriptBroker{}
		if err := nodes[i].start([]string{"serve", "--config", filepath.Join(dir, nodeDir(i+1), "strandline.yaml")}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nodes[i].kill)
		go func() { ready <- nodes[i].readReady() }()
	}
	all := true
	for range nodes {
		all = strings.HasPrefix(<-ready, "ready kafka=127.0.0.1:") && all
	}
	if !all {
		for _, n := range nodes {
			n.kill()
			t.Errorf("not ready: %s", n.log.String())
		}
		t.FailNow()
	}
	return nodes
}

// testSecuredHTTP asks the HTTP port without proof, with the administrator's certificate, and with names and passwords, and returns the client that has
// the certificate.
func testSecuredHTTP(t *testing.T, dir, url string) (administrator *http.Client) {
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		t.Fatal(err)
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, "admin.pem"), filepath.Join(dir, "admin.key"))
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AppendCertsFromPEM(ca)
	for _, one := range []struct {
		path           string
		cert           bool
		user, password string
		status         int
	}{
		{"/livez", false, "", "", 200}, {"/metrics", false, "", "", 401}, {"/metrics/detail", false, "", "", 401}, {"/v1/cluster", false, "", "", 401},
		{"/v1/cluster", true, "", "", 200}, {"/metrics", true, "", "", 200}, {"/metrics", false, "shop", "open-sesame", 403},
		{"/v1/cluster", false, adminUser, adminPassword(t, dir), 200}, {"/v1/cluster", false, "shop", "wrong", 401},
		{"/v1/cluster", false, "shop", "open-sesame", 403}, {"/v1/topics/orders", false, "shop", "open-sesame", 200},
	} {
		with := c.Clone()
		if one.cert {
			with.Certificates = []tls.Certificate{own}
		}
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: with, DisableKeepAlives: true}}
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, url+one.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if one.user != "" {
			req.SetBasicAuth(one.user, one.password)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != one.status {
			t.Errorf("%+v: %d", one, resp.StatusCode)
		}
	}
	c.Certificates = []tls.Certificate{own}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
}

// adminPassword is the one that init has made.
func adminPassword(t *testing.T, dir string) string {
	text, err := os.ReadFile(filepath.Join(dir, "admin.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, password, _ := strings.Cut(string(text), "password: ")
	password, _, _ = strings.Cut(password, "\n")
	return strings.TrimSpace(password)
}

// TestR9_R69_TheOrderStoryByCurlOverTLS runs test/e2e/orders.sh against three processes that init has locked down, with a name and a password: the
// leader changes between a publish whose answer is lost and its repetition.
func TestR9_R69_TheOrderStoryByCurlOverTLS(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "secure")
	httpPort := freePorts(t)
	args := []string{"init", "--secure", dir, "--kafka-port", fmt.Sprint(freePorts(t)), "--cluster-port", fmt.Sprint(freePorts(t)), "--http-port", fmt.Sprint(httpPort)}
	if code, out, errOut := command(t, "", args...); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, errOut)
	}
	startSecured(t, dir)
	story := []string{"../../test/e2e/orders.sh"}
	for i := range 3 {
		story = append(story, fmt.Sprintf("https://127.0.0.1:%d", httpPort+i*portStep))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tell := exec.CommandContext(ctx, "sh", story...)
	tell.Env = append(os.Environ(), fmt.Sprintf("CURL=curl --cacert %s -u %s:%s", filepath.Join(dir, "ca.pem"), adminUser, adminPassword(t, dir)))
	if out, err := tell.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// What init writes is for its owner alone, is never written over, and fits: each configuration loads, is not unsafe, and its certificate is its node's.
func TestR155_InitWritesWhatServeTakes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	for _, bad := range [][]string{
		{"init", dir}, {"init", "--secure", dir, "--hosts", "a,b"}, {"init", "--secure", dir, "--hosts", "0.0.0.0"}, {"init", "--secure", dir, "--hosts", "a:1"},
		{"init", "--secure", dir, "--http-port", "65530"}, {"init", "--secure"},
	} {
		if code, _, errOut := command(t, "", bad...); code != 2 {
			t.Errorf("%q: exit %d %s", bad, code, errOut)
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("wrong usage made files")
	}
	if code, out, errOut := command(t, "", "init", "--secure", dir, "--hosts", "10.0.0.1,broker-2.example,10.0.0.1"); code != 0 {
		t.Fatal(out, errOut)
	}
	if code, _, errOut := command(t, "", "init", "--secure", dir); code != 1 || !strings.Contains(errOut, "is not empty") {
		t.Errorf("a second time: exit %d %s", code, errOut)
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if info, err := e.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range []string{"10.0.0.1:9092", "broker-2.example:9092", "10.0.0.1:9102"} {
		text, err := os.ReadFile(filepath.Join(dir, nodeDir(id+1), "strandline.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := load.Load(text, nil, nil)
		if err == nil {
			err = c.Validate()
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := refuseUnsafe(c, false); err != nil || c.Listeners[0].Address != want || c.Listeners[0].Advertise != want || len(c.Cluster.Controllers) != 3 {
			t.Errorf("%+v: %v", c, err)
		}
		var p certs.PEM
		for file, to := range map[string]*[]byte{c.TLS.Cert: &p.Cert, c.TLS.Key: &p.Key, c.TLS.CA: &p.CA} {
			if *to, err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
		s, err := certs.Parse(p)
		if err != nil {
			t.Fatal(err)
		}
		host, _, _ := net.SplitHostPort(want)
		if err := peer.Judge(kafka.NodeID(id + 1))(s); err != nil || s.Own.Leaf.VerifyHostname(host) != nil {
			t.Errorf("node %d: %v", id+1, err)
		}
		if peer.Judge(kafka.NodeID(id+2))(s) == nil {
			t.Errorf("the certificate of node %d is another's too", id+1)
		}
	}
}

// unsaid looks for passwords in the log of a node (security tests 10 and 11).
func unsaid(t *testing.T, dir, log string) {
	t.Helper()
	profile, err := os.ReadFile(filepath.Join(dir, "admin.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(profile), "password: ")
	password, _, _ := strings.Cut(rest, "\n")
	for _, secret := range []string{"open-sesame", password} {
		if secret == "" || strings.Contains(log, secret) {
			t.Errorf("the password %q is in a log", secret)
		}
	}
}

// exposed looks for what a locked-down node must not show (security test 11): pages for debugging, and files that others could read.
func exposed(t *testing.T, dir, base string, client *http.Client) {
	t.Helper()
	for _, page := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/vars", "/debug/requests"} {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, base+page, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", page, resp.Status)
		}
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && !e.IsDir() && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
