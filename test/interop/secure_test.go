package interop

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"strandline.dev/test/interop/steps"
)

// secureFlag chooses who walks the locked-down cluster.
var secureFlag = flag.String("interop.secure", "franz-go,confluent-kafka-go,kafka-clients-4.4.0", "clients that walk a locked-down cluster: names separated by commas, or all")

// portStep lies between the ports of the nodes that `init --secure` makes on one host.
const portStep = 10

// login is how a client gets into a locked-down cluster.
type login struct{ ca, user, password string }

func (l *login) env() []string {
	if l == nil {
		return nil
	}
	return []string{"WALK_CA=" + l.ca, "WALK_USER=" + l.user, "WALK_PASSWORD=" + l.password}
}

func (l *login) opts(t *testing.T) []kgo.Opt {
	t.Helper()
	if l == nil {
		return nil
	}
	trust, err := steps.Trust(l.ca)
	if err != nil {
		t.Fatal(err)
	}
	return []kgo.Opt{kgo.DialTLSConfig(trust), kgo.SASL(scram.Auth{User: l.user, Pass: l.password}.AsSha512Mechanism())}
}

// secured is the cluster that the README's section "Locked down" makes, in a directory of its own.
type secured struct {
	t *testing.T
	// dir is where the section's commands run; strandline is in it.
	dir string
	// ports is what `init` is given, so that clusters stand beside each other; the section's own are those of init's defaults.
	ports string
	kafka int
	nodes []*securedNode
	// shop is the section's user, walker one who may do everything with topics and groups.
	shop, walker login
}

// securedNode is one serve process.
type securedNode struct {
	command string
	cmd     *exec.Cmd
	log     bytes.Buffer // written by one run at a time
	done    chan struct{}
}

// readmeBlocks are the code blocks of the README's section.
func readmeBlocks(t *testing.T, section string) []string {
	t.Helper()
	text, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), "\n## "+section+"\n")
	if !ok {
		t.Fatalf("README.md has no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var out []string
	for i, part := range strings.Split(rest, "\n```") {
		if i%2 == 1 {
			out = append(out, strings.TrimPrefix(part, "\n"))
		}
	}
	return out
}

// startSecured does what the section says, in its order and in its words.
func startSecured(t *testing.T) *secured {
	t.Helper()
	c := &secured{t: t, dir: t.TempDir(), kafka: freePorts(t)}
	c.ports = fmt.Sprintf(" --kafka-port %d --cluster-port %d --http-port %d", c.kafka, freePorts(t), freePorts(t))
	if err := os.Symlink(os.Getenv("STRANDLINE_BIN"), filepath.Join(c.dir, "strandline")); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(readmeBlocks(t, "Locked down")[0]) {
		command, comment, _ := strings.Cut(line, "#")
		switch command = strings.TrimSpace(command); {
		case strings.Contains(command, " init "):
			c.sh(command + c.ports)
		case strings.Contains(command, " serve "):
			c.serve(command, comment)
		case strings.Contains(command, " user create "):
			c.shop = c.user(command)
		default:
			c.sh(command)
		}
	}
	// Who may do everything with topics and groups, made by the same commands.
	c.walker = c.user("./strandline user create walker --profile ./secure/admin.yaml")
	c.sh("./strandline acl create --user walker --op all --resource 'topic:*,group:*' --profile ./secure/admin.yaml")
	return c
}

// sh runs a command as a person does, and returns what it said on stdout.
func (c *secured) sh(command string) string {
	c.t.Helper()
	cmd := exec.CommandContext(deadline(c.t), "bash", "-c", command)
	cmd.Dir = c.dir
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("%s: %v: %s%s%s", command, err, out, &errOut, last(c.logs()))
	}
	return string(out)
}

// user runs a command that creates a user and takes the password that it prints.
func (c *secured) user(command string) login {
	c.t.Helper()
	m := regexp.MustCompile(`^(\S+) created, password (\S+)\n$`).FindStringSubmatch(c.sh(command))
	if m == nil {
		c.t.Fatalf("%s printed no password", command)
	}
	return login{ca: filepath.Join(c.dir, "secure", "ca.pem"), user: m[1], password: m[2]}
}

// serve starts the node of the command and those that its comment names, and waits until all are ready.
func (c *secured) serve(command, comment string) {
	c.t.Helper()
	for _, id := range append([]string{"n1"}, regexp.MustCompile(`\bn\d\b`).FindAllString(comment, -1)...) {
		c.nodes = append(c.nodes, &securedNode{command: strings.ReplaceAll(command, "n1", id)})
	}
	if len(c.nodes) != 3 {
		c.t.Fatalf("%s # %s: it names %d nodes", command, comment, len(c.nodes))
	}
	ready := make(chan error, len(c.nodes))
	for _, n := range c.nodes {
		wait, err := n.start(c.dir)
		if err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(n.kill)
		go func() { ready <- wait() }()
	}
	for range c.nodes {
		if err := <-ready; err != nil {
			c.t.Fatal(err, c.logs())
		}
	}
}

// start starts the process; wait returns when it has said that it is ready.
func (n *securedNode) start(dir string) (wait func() error, err error) {
	n.cmd, n.done = exec.Command("bash", "-c", "exec "+n.command), make(chan struct{})
	n.cmd.Dir, n.cmd.Stderr = dir, &n.log
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	line := make(chan string, 1)
	go func() {
		s := bufio.NewScanner(out)
		s.Scan()
		line <- s.Text()
		for s.Scan() {
		}
		_ = n.cmd.Wait()
		close(n.done)
	}()
	return func() error {
		select {
		case said := <-line:
			if strings.HasPrefix(said, "ready kafka=") {
				return nil
			}
			return fmt.Errorf("%s: %q", n.command, said)
		case <-time.After(readyMax):
			return fmt.Errorf("%s: not ready after %v", n.command, readyMax)
		}
	}, nil
}

func (n *securedNode) kill() {
	_ = n.cmd.Process.Kill()
	<-n.done
}

func (c *secured) address(id int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.kafka+portStep*(id-1)))
}

func (c *secured) brokers() string {
	return strings.Join([]string{c.address(1), c.address(2), c.address(3)}, ",")
}

func (c *secured) replicas() int { return 3 }
func (c *secured) login() *login { return &c.walker }

func (c *secured) logs() string {
	var out string
	for _, n := range c.nodes {
		n.kill() // what it writes while it is read would be a race; whoever asks has failed
		out += fmt.Sprintf("--- %s\n%s\n", n.command, last(n.log.String()))
	}
	return out
}

// halfway kills -9 the node that leads partition 0 of orders, starts it again, and lets it lead again what it led: so no coordinator moves while
// members leave, which not every client does twice.
func (c *secured) halfway() {
	var topic struct{ Partitions []struct{ Leader int } }
	said := c.sh("./strandline topic describe orders -o json --profile ./secure/admin.yaml")
	if err := json.Unmarshal([]byte(said), &topic); err != nil || len(topic.Partitions) == 0 || topic.Partitions[0].Leader < 1 {
		c.t.Errorf("no leader of orders: %v: %s", err, said)
		return
	}
	n := c.nodes[topic.Partitions[0].Leader-1]
	n.kill()
	wait, err := n.start(c.dir)
	if err == nil {
		err = wait()
	}
	if err != nil {
		c.t.Error(err)
		return
	}
	c.sh("until ./strandline cluster health --profile ./secure/admin.yaml; do sleep 0.2; done; ./strandline partition elect --profile ./secure/admin.yaml")
}

// portsFrom is where freePorts looks next: below the ports that the system gives to connections, and never twice at the same place.
var portsFrom atomic.Int32

// freePorts is the first of three free ports as init wants them.
func freePorts(t *testing.T) int {
	t.Helper()
	free := func(port int) bool {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		return l.Close() == nil
	}
	for range 200 {
		port := 21000 + 3*portStep*int(portsFrom.Add(1)-1)
		if free(port) && free(port+portStep) && free(port+2*portStep) {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}

// TestSecure_ReadmeSection (R147, R148, R149, R155) follows the README's section "Locked down" alone: its commands, then its settings for Java, with
// which Kafka's own producer publishes as the section's user. The same user may not read: no rule says so.
func TestSecure_ReadmeSection(t *testing.T) {
	t.Parallel()
	c := startSecured(t)
	blocks := readmeBlocks(t, "Locked down")
	java := slices.IndexFunc(blocks, func(b string) bool { return strings.HasPrefix(b, "bootstrap.servers=") })
	if java < 0 {
		t.Fatal("the section has no settings for Java")
	}
	settings := strings.ReplaceAll(blocks[java], "127.0.0.1:9092", c.address(1))
	settings += fmt.Sprintf("\nsasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username=%q password=%q;\n", c.shop.user, c.shop.password)
	file := filepath.Join(c.dir, "client.properties")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	perf := func(args ...string) (string, error) {
		classes := cached(t, "java", "kafka-tools-"+pinned(t, pin{"maven", "org.apache.kafka:kafka-tools", ""})) + "/*"
		ctx, cancel := context.WithTimeout(context.Background(), taskTimeMax)
		defer cancel()
		cmd := exec.CommandContext(ctx, "java", append([]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", classes}, args...)...)
		cmd.Dir = c.dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := perf(toolsPackage+"ProducerPerformance", "--topic", "orders", "--num-records", "1000", "--record-size", "100", "--throughput", "-1", "--producer.config", file); err != nil || !strings.Contains(out, "1000 records sent") {
		t.Errorf("publishing as %s: %v: %s", c.shop.user, err, out)
	}
	out, _ := perf(toolsPackage+"consumer.ConsoleConsumer", "--topic", "orders", "--from-beginning", "--max-messages", "1", "--timeout-ms", "10000",
		"--bootstrap-server", c.address(1), "--consumer.config", file)
	if !strings.Contains(out, "AuthorizationException") {
		t.Errorf("reading as %s was not refused: %s", c.shop.user, out)
	}
	got := c.sh("./strandline consume orders -o start -n 1000 -f '%o\\n' --profile ./secure/admin.yaml")
	if n := strings.Count(got, "\n"); n != 1000 {
		t.Errorf("the administrator reads %d records", n)
	}
}

// TestSecure_ClientsWalk walks clients through the cluster of that section, over SASL_SSL with SCRAM-SHA-512, as a user whose rights are rules (kcat
// by PLAIN: the librdkafka that Debian ships has a fault in SCRAM). A node is killed half-way.
func TestSecure_ClientsWalk(t *testing.T) {
	for _, p := range programs(t) {
		if *secureFlag != "all" && !slices.Contains(strings.Split(*secureFlag, ","), p.name) {
			continue
		}
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			c := startSecured(t)
			c.sh("./strandline topic delete orders -y --profile ./secure/admin.yaml") // the walk makes its own
			if p.name == "kcat" {
				c.sh("for t in orders times codec-{none,gzip,snappy,lz4,zstd}; do ./strandline topic create $t -p 1 -r 3 --profile ./secure/admin.yaml; done")
			}
			p.name += "-secure"
			p.walk(t, c)
		})
	}
}
