package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth/certs/certstest"
	"strandline.dev/internal/config"
	"strandline.dev/internal/node"
	"strandline.dev/internal/sys"
)

// newTestNode runs a node of its own with more settings.
func newTestNode(t *testing.T, more map[string]string) string {
	t.Helper()
	values := map[string]string{
		"node.id": "1", "data.dir": t.TempDir(), "http.address": config.NoHTTP, "listeners.0.name": "clients", "listeners.0.address": "127.0.0.1:0",
	}
	maps.Copy(values, more)
	c, err := config.Build(values, false)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	n, err := node.Start(ctx, node.Options{Config: c, Machine: sys.Real(), Log: newLogger(c, new(bytes.Buffer))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop(ctx) })
	return n.KafkaAddresses()[0]
}

// runDoctor is a command line; it returns what was printed and the exit code.
func runDoctor(t *testing.T, args ...string) (string, int) {
	t.Helper()
	a := newApp()
	var out, errOut bytes.Buffer
	a.stdin, a.stdout, a.stderr = strings.NewReader(""), &out, &errOut
	a.lookup = func(string) (string, bool) { return "", false }
	a.configDir = func() (string, error) { return t.TempDir(), nil }
	code := run(append([]string{"doctor", "-X", "timeout=5s"}, args...), a)
	if errOut.Len() > 0 {
		t.Errorf("stderr: %s", errOut.String())
	}
	return out.String(), code
}

// TestDoctor_WrongAdvertise: the node works, and sends its clients where nobody is; the line that mends it is told. What is known of the
// node through the address that was named is still looked at.
func TestDoctor_WrongAdvertise(t *testing.T) {
	at := newTestNode(t, map[string]string{"listeners.0.advertise": "127.0.0.1:1", "kafka.default.replication.factor": "3"})
	out, code := runDoctor(t, "--brokers", at)
	for _, want := range []string{
		"ok       listener     " + at + ": node 1 answers\n",
		"wrong    advertise    node 1 at 127.0.0.1:1: clients are sent there, and cannot get there from this machine: connection refused\n" +
			"                      fix: in the file of node 1 set `advertise: " + at + "` for this listener (the first one: --listeners-0-advertise " + at + "), and start it again\n",
		"ok       clock        1 nodes",
		"wrong    limits       node 1: default.replication.factor is 3, and 1 nodes can take replicas",
		"2 wrong, ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nwant %s", out, want)
		}
	}
	if code != 1 {
		t.Errorf("exit code %d", code)
	}
	_, port, _ := strings.Cut(at, ":")
	stray := newTestNode(t, map[string]string{"listeners.0.advertise": "localhost:" + port, "kafka.default.replication.factor": "1"})
	out, _ = runDoctor(t, "--brokers", stray)
	if want := "another cluster, "; !strings.Contains(out, want) { // the first node listens there
		t.Errorf("%s\nwant %s", out, want)
	}
}

// TestDoctor_TLS: each way in which TLS does not come about is told with what to change, and a certificate that is trusted with its end.
func TestDoctor_TLS(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, text []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own, other := certstest.NewAuthority(t, "ca"), certstest.NewAuthority(t, "other")
	good, foreign := own.Issue(certstest.Wanted{Name: "node", Hosts: []string{"127.0.0.1"}}), other.Issue(certstest.Wanted{Name: "node"})
	elsewhere := own.Issue(certstest.Wanted{Name: "node", Hosts: []string{"broker.example"}})
	ca, wrongCA := file("ca.pem", good.CA), file("other.pem", foreign.CA)
	at := newTestNode(t, map[string]string{"listeners.0.tls": "true", "tls.cert": file("cert.pem", good.Cert), "tls.key": file("key.pem", good.Key), "kafka.default.replication.factor": "1"})
	misnamed := newTestNode(t, map[string]string{"listeners.0.tls": "true", "tls.cert": file("cert2.pem", elsewhere.Cert), "tls.key": file("key2.pem", elsewhere.Key)})
	for _, c := range []struct {
		args []string
		want string
		code int
	}{
		{[]string{"--brokers", at}, "the listener speaks TLS, and this client does not\n                      fix: give -X tls=true", 1},
		{[]string{"--brokers", at, "-X", "tls=true", "-X", "tls.ca=" + wrongCA}, "of a CA that this client does not trust\n                      fix: give -X tls.ca=FILE", 1},
		{[]string{"--brokers", misnamed, "-X", "tls=true", "-X", "tls.ca=" + ca}, "does not speak for this address", 1},
		{[]string{"--brokers", at, "-X", "tls=true", "-X", "tls.ca=" + ca}, "tls          " + at + ": the certificate ", 0},
	} {
		if out, code := runDoctor(t, c.args...); !strings.Contains(out, c.want) || code != c.code {
			t.Errorf("%q: %d\n%s\nwant %d, %s", c.args, code, out, c.code, c.want)
		}
	}
}

// newTestCheckup is three nodes that are well, as they are seen from here.
func newTestCheckup() checkup {
	at := time.Unix(1000, 0)
	apis := map[int16]kmsg.ApiVersionsResponseApiKey{1: {ApiKey: 1, MaxVersion: 17}, 18: {ApiKey: 18, MaxVersion: 5}}
	newProbe := func(node int32, address string) *probe {
		return &probe{
			address: address, node: node, is: node, clusterID: "c", apis: apis, replicas: 3,
			clock: clockReading{at, at.Add(time.Millisecond), at}, disk: diskReading{known: true, total: 1e12, usable: 5e11},
		}
	}
	v := newTestView()
	v.Nodes = v.Nodes[:3]
	c := checkup{settings: settings{httpGiven: true, tls: true, http: "http://h1:8080"}, view: v, minISR: map[string]int{"t": 2}}
	c.files = map[string]float64{"process_open_fds": 10, "process_max_fds": 1000}
	c.named = []*probe{newProbe(-1, "h1:9092")}
	c.named[0].is, c.named[0].brokers = 1, make([]kmsg.MetadataResponseBroker, 3)
	c.told = []*probe{newProbe(1, "h1:9092"), newProbe(2, "h2:9092"), newProbe(3, "h3:9092")}
	return c
}

// TestDoctor_Judges: one thing after the other is wrong, and that is found, with its fix, and nothing else.
func TestDoctor_Judges(t *testing.T) {
	for _, f := range diagnose(newTestCheckup()).Findings {
		if f.State != stateOK || f.Fix != "" {
			t.Errorf("of nodes that are well: %+v", f)
		}
	}
	hour := func(p *probe, by time.Duration) { p.clock.node = p.clock.node.Add(by) }
	for name, c := range map[string]struct {
		harm              func(*checkup)
		state, check      string
		where, want, mend string
	}{
		"two clusters": {func(c *checkup) {
			c.named = append(c.named, &probe{address: "h9:9092", clusterID: "d"})
		}, stateWrong, "listener", "h9:9092", "another cluster, d,", "one cluster"},
		"nobody":          {func(c *checkup) { c.named[0].brokers, c.told = nil, nil }, stateWrong, "listener", "h1:9092", "knows of no broker", "cluster health"},
		"another node":    {func(c *checkup) { c.told[1].is = 3 }, stateWrong, "advertise", "node 2 at h2:9092", "node 3 answers there", "in the file of node 2 set `advertise: HOST:PORT"},
		"another cluster": {func(c *checkup) { c.told[1].clusterID = "d" }, stateWrong, "advertise", "node 2", "another cluster, d,", "node 2"},
		"any address":     {func(c *checkup) { c.told[0].address = "0.0.0.0:9092" }, stateWrong, "advertise", "node 1", "an address that is none", "`advertise: h1:9092`"},
		"unreachable":     {func(c *checkup) { c.told[2].dialErr = errors.New("no route to host") }, stateWrong, "advertise", "node 3", "no route to host", "in the file of node 3"},
		"not told":        {func(c *checkup) { c.told[2].is = -1 }, stateUnknown, "advertise", "node 3", "not told to this user", ""},
		"old":             {func(c *checkup) { c.told[2].apis = map[int16]kmsg.ApiVersionsResponseApiKey{1: {MaxVersion: 16}} }, stateWarning, "versions", "node 3", "first in API key 1", "same release"},
		"clock behind":    {func(c *checkup) { hour(c.told[1], -time.Hour) }, stateWrong, "clock", "node 2", "1h0m0s behind this machine", "synchronise its clock"},
		"clock ahead":     {func(c *checkup) { hour(c.told[1], 2*time.Second) }, stateWrong, "clock", "node 2", "1.999s ahead of this machine", "synchronise its clock"},
		"own clock": {func(c *checkup) {
			for _, p := range c.told {
				hour(p, time.Hour)
			}
		}, stateWrong, "clock", "this machine", "behind all 3 nodes", "of this machine"},
		"full":             {func(c *checkup) { c.told[0].disk.usable = 1e8 }, stateWrong, "disk", "node 1", "records are refused", "make room"},
		"at its limit":     {func(c *checkup) { c.told[0].disk.room = diskRoom{90, 90, "the disk limit is reached: node 1"} }, stateWrong, "disk", "node 1", "records are refused: the disk limit is reached", "disk.limit"},
		"near its limit":   {func(c *checkup) { c.told[0].disk.room = diskRoom{95e9, 1e11, ""} }, stateWarning, "disk", "node 1", "95.00 GB of the 100.0 GB are used", "make room"},
		"nearly full":      {func(c *checkup) { c.told[0].disk.usable = 9e10 }, stateWarning, "disk", "node 1", "90.00 GB of 1.000 TB is free", "make room"},
		"lost":             {func(c *checkup) { c.told[0].disk.lost = 2 }, stateWrong, "disk", "node 1", "2 replicas could not be opened", "log verify"},
		"files":            {func(c *checkup) { c.files["process_open_fds"] = 900 }, stateWrong, "limits", "http://h1:8080", "900 files", "4000 or more"},
		"files, no --http": {func(c *checkup) { c.settings.httpGiven, c.files = false, nil }, stateUnknown, "limits", "open files", "only the metrics", "--http URL"},
		"files, found":     {func(c *checkup) { c.settings.httpGiven, c.files["process_open_fds"] = false, 900 }, stateWrong, "limits", "http://h1:8080", "900 files", "4000 or more"},
		"factor":           {func(c *checkup) { c.told[1].replicas = 4 }, stateWrong, "limits", "node 2", "is 4, and 3 nodes", "default.replication.factor to 3"},
		"out of sync":      {func(c *checkup) { c.view.Partitions[0].ISR = []int32{1, 2} }, stateWrong, "replication", "cluster c", "fewer replicas in sync", ""},
		"controllers":      {func(c *checkup) { c.view.Controllers = []int32{1} }, stateWarning, "replication", "controllers", "1 of 3 nodes", "add-controller"},
		"tight":            {func(c *checkup) { c.minISR["t"] = 3 }, stateWarning, "replication", "t", "stops with any node", "min.insync.replicas"},
		"plain text":       {func(c *checkup) { c.settings.tls = false }, stateWarning, "tls", "this client", "plain text", "tls: true"},
		"ending":           {func(c *checkup) { c.told[0].certificate = &x509.Certificate{NotAfter: time.Now().Add(time.Hour)} }, stateWarning, "tls", "h1:9092", "ends on", "new tls.cert"},
		"no view":          {func(c *checkup) { c.view, c.viewErr = nil, errors.New("not allowed") }, stateUnknown, "replication", "the cluster", "not allowed", ""},
	} {
		up := newTestCheckup()
		c.harm(&up)
		d := diagnose(up)
		found := 0
		for _, f := range d.Findings {
			if f.State == stateOK {
				continue
			}
			if found++; f.State != c.state || f.Check != c.check || !strings.HasPrefix(f.Where, c.where) || !strings.Contains(f.Detail, c.want) || !strings.Contains(f.Fix, c.mend) {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if found != 1 || d.OK != (c.state != stateWrong) {
			t.Errorf("%s: %d findings, %+v", name, found, d)
		}
	}
}
