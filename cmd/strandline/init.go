package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/auth/certs"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/peer"
)

const (
	// caYears and certificateYears are how long what init makes is valid.
	caYears, certificateYears = 10, 3
	// adminUser is the user that init makes.
	adminUser = "admin"
	// portStep lies between the ports of nodes on one host, as under dev.
	portStep = 10
)

const initLong = `Make everything that a locked-down cluster needs, in a new directory: a CA, a certificate for each node, a user admin with a random
password, a profile with which the commands log in as admin, and a configuration for each node. Clients speak TLS and log in (SCRAM-SHA-512 or
PLAIN), nodes prove to each other who they are, the HTTP port takes a certificate of the CA or a name and password (Basic), and what no rule allows is
denied.

One node for each of --hosts: 1, 3 or 5. Nodes of one host have ports 10 apart. The files name DIR by its absolute path: on another machine put a
node's directory at the same place. Keep ca.key away from all machines: who has it can be anybody. Nothing is overwritten.`

const initExample = `  strandline init --secure ./secure
  strandline serve --config ./secure/n1/strandline.yaml      # and n2, n3
  strandline topic create orders -p 6 -r 3 --profile ./secure/admin.yaml
  strandline init --secure ./secure --hosts 10.0.0.1,10.0.0.2,10.0.0.3`

// initFlags are the flags of init.
type initFlags struct {
	secure                           bool
	hosts                            []string
	kafkaPort, clusterPort, httpPort int
}

func newInitCommand(a *app) *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use: "init --secure DIR", Short: "Make certificates, an administrator and configurations for a locked-down cluster", Long: initLong, Example: initExample,
		Args: exactArgs("DIR"),
		RunE: func(_ *cobra.Command, args []string) error { return a.initSecure(args[0], f) },
	}
	cmd.Flags().BoolVar(&f.secure, "secure", false, "TLS, logins and rules of access for everything")
	cmd.Flags().StringSliceVar(&f.hosts, "hosts", []string{"127.0.0.1", "127.0.0.1", "127.0.0.1"}, "`HOST,...` of each node, as clients and other nodes reach it")
	cmd.Flags().IntVar(&f.kafkaPort, "kafka-port", 9092, "`PORT` for clients")
	cmd.Flags().IntVar(&f.clusterPort, "cluster-port", 19091, "`PORT` for other nodes")
	cmd.Flags().IntVar(&f.httpPort, "http-port", 8080, "`PORT` for HTTP")
	return cmd
}

// securedNode is one node that init makes.
type securedNode struct {
	id                   int
	host                 string
	kafka, cluster, http string // host:port
}

func (f *initFlags) nodes() ([]securedNode, error) {
	if !f.secure {
		return nil, usagef("init makes secure clusters only: give --secure; an open broker for development is `strandline dev`")
	}
	if n := len(f.hosts); n != 1 && n != 3 && n != 5 {
		return nil, usagef("--hosts names %d nodes: want 1, 3 or 5", n)
	}
	var out []securedNode
	for i, h := range f.hosts {
		if ip := net.ParseIP(h); h == "" || strings.ContainsAny(h, " /[]\"'") || strings.Contains(h, ":") && ip == nil || ip != nil && ip.IsUnspecified() {
			return nil, usagef("host %q: want a name or an address by which others reach the node, without a port", h)
		}
		step := portStep * len(slices.DeleteFunc(slices.Clone(f.hosts[:i]), func(other string) bool { return other != h }))
		n := securedNode{id: i + 1, host: h}
		for _, p := range []struct {
			to   *string
			base int
		}{{&n.kafka, f.kafkaPort}, {&n.cluster, f.clusterPort}, {&n.http, f.httpPort}} {
			if p.base < 1 || p.base+step > 65535 {
				return nil, usagef("port %d: want 1 to 65535", p.base+step)
			}
			*p.to = net.JoinHostPort(h, strconv.Itoa(p.base+step))
		}
		out = append(out, n)
	}
	return out, nil
}

func (a *app) initSecure(given string, f initFlags) error {
	nodes, err := f.nodes()
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(given)
	if err != nil {
		return failf(err, "cannot make %s", given)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return &failure{what: "nothing was made: " + dir + " is not empty", todo: "name a new directory: certificates and passwords are never overwritten"}
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return failf(err, "cannot make %s", dir)
	}
	files, err := secureFiles(dir, nodes)
	if err != nil {
		return failf(err, "cannot make certificates")
	}
	for _, file := range files {
		if err := writeSecret(filepath.Join(dir, file.name), file.text); err != nil {
			return failf(err, "cannot write %s", filepath.Join(dir, file.name))
		}
	}
	for _, n := range nodes {
		fmt.Fprintf(a.stdout, "strandline serve --config %s\n", shellWord(filepath.Join(given, nodeDir(n.id), "strandline.yaml")))
	}
	profile := filepath.Join(given, "admin.yaml")
	if !strings.ContainsRune(profile, filepath.Separator) {
		profile = "." + string(filepath.Separator) + profile
	}
	fmt.Fprintf(a.stdout, "strandline cluster health --profile %s\n", shellWord(profile))
	fmt.Fprintf(a.stderr, "the password of user %s is in %s; move %s to a safe place: who has it can be anybody\n", adminUser, profile, filepath.Join(given, "ca.key"))
	return nil
}

func nodeDir(id int) string { return "n" + strconv.Itoa(id) }

// writeSecret writes a new file that only its owner reads, on the disk before it returns.
func writeSecret(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// secureFile is a file that init writes.
type secureFile struct {
	name string
	text []byte
}

// secureFiles is all that a cluster of these nodes needs.
func secureFiles(dir string, nodes []securedNode) ([]secureFile, error) {
	now := time.Now()
	ca, err := certs.NewAuthority("strandline "+now.UTC().Format(time.DateOnly), now.AddDate(caYears, 0, 0))
	if err != nil {
		return nil, err
	}
	password := newPassword()
	admin, err := auth.NewScram(adminUser, password, metadata.ScramSHA512)
	if err != nil {
		return nil, err
	}
	until := now.AddDate(certificateYears, 0, 0)
	own, err := ca.Issue(certs.Wanted{Name: adminUser, Uses: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, Until: until})
	if err != nil {
		return nil, err
	}
	var brokers, controllers []string
	for _, n := range nodes {
		brokers = append(brokers, n.kafka)
		controllers = append(controllers, strconv.Itoa(n.id)+"@"+n.cluster)
	}
	profile, err := yaml.Marshal(profileFile{Default: adminUser, Profiles: map[string]map[string]string{adminUser: {
		"brokers": strings.Join(brokers, ","), "tls": "true", "tls.ca": filepath.Join(dir, "ca.pem"),
		"sasl.mechanism": auth.Scram512, "user": adminUser, "password": password,
	}}})
	if err != nil {
		return nil, err
	}
	files := []secureFile{
		{"ca.key", ca.PEM.Key}, {"ca.pem", ca.PEM.Cert},
		{"admin.yaml", profile}, {"admin.pem", own.Cert}, {"admin.key", own.Key},
	}
	for _, n := range nodes {
		p, err := ca.Issue(certs.Wanted{
			Name: "node " + strconv.Itoa(n.id), URIs: []string{peer.NodeURI(kafka.NodeID(n.id))}, Hosts: []string{n.host}, Until: until,
		})
		if err != nil {
			return nil, err
		}
		to := nodeDir(n.id)
		files = append(files,
			secureFile{filepath.Join(to, "users"), []byte(auth.UserLine(admin) + "\n")}, secureFile{filepath.Join(to, "ca.pem"), p.CA}, secureFile{filepath.Join(to, "cert.pem"), p.Cert}, secureFile{filepath.Join(to, "key.pem"), p.Key},
			secureFile{filepath.Join(to, "strandline.yaml"), []byte(secureConfig(dir, n, controllers))})
	}
	return files, nil
}

// secureConfig is the configuration of a node. %q of Go is a double-quoted text of YAML for every path that has no control characters.
func secureConfig(dir string, n securedNode, controllers []string) string {
	at := func(name string) string { return strconv.Quote(filepath.Join(dir, nodeDir(n.id), name)) }
	quoted := make([]string, len(controllers))
	for i, c := range controllers {
		quoted[i] = strconv.Quote(c)
	}
	return fmt.Sprintf(`# Node %[1]d of %[2]d, written by strandline init --secure.
node: {id: %[1]d}
data: {dir: %[3]s}
cluster:
  address: %[4]q
  controllers: [%[5]s]
listeners:                 # clients speak TLS and log in; PLAIN is for those that do not know SCRAM
  - {name: clients, address: %[6]q, advertise: %[6]q, tls: true, sasl: [SCRAM-SHA-512, PLAIN]}
http: {address: %[7]q, tls: true, mtls: requested}   # with a certificate of the CA, such as admin.pem, or a name and password
tls:
  cert: %[8]s
  key: %[9]s
  ca: %[10]s
  cluster: {cert: %[8]s, key: %[9]s, ca: %[10]s}
auth:
  users.file: %[11]s       # the same on every node: who gets in before the cluster knows any user
  super.users: "User:%[12]s;User:CN=%[12]s"
kafka:
  default.replication.factor: %[13]d
`, n.id, len(controllers), at("data"), n.cluster, strings.Join(quoted, ", "), n.kafka, n.http, at("cert.pem"), at("key.pem"), at("ca.pem"),
		at("users"), adminUser, min(3, len(controllers)))
}
