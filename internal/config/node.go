package config

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"strandline.dev/internal/kafka"
)

// AdvertiseAuto is the value of a listener's advertise that stands for the local address of each accepted connection.
const AdvertiseAuto = "auto"

// NoHTTP is the value of http.address that opens no port.
const NoHTTP = "none"

// The roles of a node.
const (
	RoleController = "controller"
	RoleBroker     = "broker"
)

// Node is everything strandline.yaml says, nested like the file.
type Node struct {
	Node struct {
		ID   kafka.NodeID
		Rack string
	}
	// Roles has RoleController, RoleBroker or both.
	Roles []string
	Data  struct {
		Dir string
	}
	Disk struct {
		// LimitBytes bounds what the data directory holds, LimitPercent how full its disk is; 0 is no limit.
		LimitBytes, LimitPercent int64
	}
	Encryption struct {
		// Keyring is the keyring file; "" without encryption.
		Keyring string
	}
	Cluster struct {
		// Address is where other nodes reach this one.
		Address string
		// Controllers are "id@host:port"; empty means only this node.
		Controllers []string
	}
	TLS struct {
		// Cluster holds PEM files for traffic between nodes; all are "" without TLS.
		Cluster struct{ Cert, Key, CA string }
		// Cert and Key are shown to clients, CA is that of their certificates. PrincipalRules turn the names in these into principals.
		Cert, Key, CA  string
		PrincipalRules string
	}
	Auth      Auth
	Listeners []Listener
	HTTP      struct {
		// Address is host:port, or NoHTTP.
		Address    string
		TLS        bool
		ClientCert string
	}
	Canary struct {
		// Interval is the time between two measurements; 0: none are made.
		Interval time.Duration
	}
	Broker struct {
		// SessionTimeout is how long a silent broker stays unfenced.
		SessionTimeout time.Duration
	}
	Replica struct {
		// LagMax is how far behind in time a replica may be and stay in the ISR.
		LagMax time.Duration
	}
	Log struct {
		Level  string // debug, info, warn, error
		Format string // auto, text, json
		// SlowRequest is how long a request may take without a line in the log; 0: as long as it likes.
		SlowRequest time.Duration
	}
	// Kafka is the "kafka:" section.
	Kafka Broker
}

// Listener is one address for clients.
type Listener struct {
	Name    string
	Address string // host:port to bind
	// Advertise is host:port, or AdvertiseAuto.
	Advertise string
	TLS       bool
	// SASL are the mechanisms offered; empty: clients are not asked who they are.
	SASL []string
	// ClientCert is CertNone, CertRequested or CertRequired.
	ClientCert string
}

// Defaults returns the settings of `serve` before any file, environment or flag.
func Defaults() Node { return mustBuild(false) }

// Dev returns the settings of `dev` before any flag.
func Dev() Node { return mustBuild(true) }

func mustBuild(dev bool) Node {
	n, err := Build(nil, dev)
	if err != nil {
		panic(fmt.Sprintf("config: a default of the table is not valid: %v", err))
	}
	return n
}

// Build makes a Node from flat values: "node.id", "kafka.num.partitions", "listeners.0.address". What is not given has its default, of
// `dev` or of `serve`. The error joins every fault found; it wraps ErrUnknown or ErrInvalid. Build does not call Validate.
func Build(values map[string]string, dev bool) (Node, error) {
	var n Node
	var errs []error
	for _, s := range nodeRows {
		value, ok := values[s.Name]
		if !ok {
			value = s.DefaultFor(dev)
		}
		errs = append(errs, s.store(s.node(&n), value))
	}
	static := map[string]string{}
	for _, name := range sortedKeys(values) {
		if _, err := Find(name); err != nil {
			errs = append(errs, err)
		}
		if rest, ok := strings.CutPrefix(name, kafkaPrefix); ok && Lookup(ScopeBroker, rest) != nil {
			static[rest] = values[name]
		}
	}
	var err error
	n.Listeners, err = buildListeners(values)
	errs = append(errs, err)
	n.Kafka, err = ResolveBroker(static, dev)
	return n, errors.Join(append(errs, err)...)
}

// HasHTTP says whether the node opens an HTTP port.
func (n Node) HasHTTP() bool { return n.HTTP.Address != NoHTTP && n.HTTP.Address != "" }

// Validate checks what single values cannot show. The error names every fault found, one a line.
func (n Node) Validate() error {
	var errs []error
	fault := func(key, value, why, allowed string) {
		errs = append(errs, &ValueError{Key: key, Value: value, Why: why, Allowed: allowed})
	}
	if n.Node.ID < 1 {
		fault("node.id", "", "is not set", "a number from 1")
	}
	if len(n.Roles) == 0 {
		fault("roles", "", "is empty", "controller, broker or both")
	}
	if every := n.Canary.Interval; every > 0 && every < canaryIntervalMin {
		fault("canary.interval", every.String(), "is too short", "0s, or a duration from "+canaryIntervalMin.String())
	}
	addressFault(fault, "http.address", n.HTTP.Address, !n.HasHTTP())
	addressFault(fault, "cluster.address", n.Cluster.Address, n.Cluster.Address == "")
	if slices.Contains(n.Roles, RoleBroker) && len(n.Listeners) == 0 {
		fault("listeners", "", "is empty: a broker needs one", "a list of {name, address}")
	}
	n.validateListeners(fault)
	n.validateControllers(fault)
	n.validateCluster(fault)
	n.validateAccess(fault)
	return errors.Join(errs...)
}

type faultFunc func(key, value, why, allowed string)

func (n Node) validateListeners(fault faultFunc) {
	var names, addresses []string
	for i, l := range n.Listeners {
		key := "listeners." + strconv.Itoa(i)
		if l.Name == "" {
			fault(key+".name", "", "is empty", "a name")
		}
		if slices.Contains(names, l.Name) {
			fault(key+".name", l.Name, "is the name of another listener", "a unique name")
		}
		if slices.Contains(addresses, l.Address) && !strings.HasSuffix(l.Address, ":0") {
			fault(key+".address", l.Address, "is the address of another listener", "a unique address")
		}
		names, addresses = append(names, l.Name), append(addresses, l.Address)
		addressFault(fault, key+".address", l.Address, false)
		addressFault(fault, key+".advertise", l.Advertise, l.Advertise == AdvertiseAuto)
		if len(n.Cluster.Controllers) > 1 && l.Advertise == AdvertiseAuto && isWildcard(l.Address) {
			fault(key+".advertise", l.Advertise, "does not say under which address clients reach a listener that is bound to every address of a cluster's node", "host:port")
		}
	}
}

func (n Node) validateControllers(fault faultFunc) {
	const allowed = "1, 3 or 5 controllers as id@host:port"
	if c := len(n.Cluster.Controllers); c != 0 && c != 1 && c != 3 && c != 5 {
		fault("cluster.controllers", strings.Join(n.Cluster.Controllers, ","), fmt.Sprintf("has %d controllers", c), allowed)
	}
	var ids []string
	for _, c := range n.Cluster.Controllers {
		id, address, ok := strings.Cut(c, "@")
		if v, err := strconv.ParseInt(id, 10, 32); !ok || err != nil || v < 1 {
			fault("cluster.controllers", c, "has no node id", allowed)
			continue
		}
		if slices.Contains(ids, id) {
			fault("cluster.controllers", c, "repeats node id "+id, allowed)
		}
		ids = append(ids, id)
		addressFault(fault, "cluster.controllers", address, false)
	}
	listed := slices.Contains(ids, n.Node.ID.String())
	switch {
	case n.Cluster.Address != "":
	case len(ids) > 1:
		fault("cluster.address", "", "is empty: a cluster of several controllers needs it", "host:port")
	case len(ids) == 1 && !listed:
		fault("cluster.address", "", "is empty: this node is to join the cluster of controller "+ids[0]+" and cannot be reached by it", "host:port")
	}
	if len(ids) > 0 && listed != slices.Contains(n.Roles, RoleController) {
		fault("cluster.controllers", strings.Join(n.Cluster.Controllers, ","),
			fmt.Sprintf("does not agree with roles %q of node %v", strings.Join(n.Roles, ","), n.Node.ID), "the ids of the nodes with role controller")
	}
}

// validateCluster checks how other nodes reach this one.
func (n Node) validateCluster(fault faultFunc) {
	c := n.TLS.Cluster
	for _, f := range []struct{ key, value string }{{"cert", c.Cert}, {"key", c.Key}, {"ca", c.CA}} {
		if f.value == "" && n.HasClusterTLS() {
			fault("tls.cluster."+f.key, "", "is not set, and others of tls.cluster are", "a PEM file")
		}
	}
	if n.Cluster.Address != "" && isWildcard(n.ClusterAdvertised()) {
		fault("cluster.address", n.Cluster.Address, "does not say under which address other nodes reach this one", "host:port, or an entry of this node in cluster.controllers")
	}
}

// HasClusterTLS says whether traffic between nodes is to be encrypted and authenticated.
func (n Node) HasClusterTLS() bool {
	c := n.TLS.Cluster
	return c.Cert != "" || c.Key != "" || c.CA != ""
}

// ClusterAdvertised is the address at which other nodes reach this one: its entry in cluster.controllers, or cluster.address.
func (n Node) ClusterAdvertised() string {
	if address := n.ControllerAddress(n.Node.ID); address != "" {
		return address
	}
	return n.Cluster.Address
}

// ControllerAddress is the configured address of a controller, or "".
func (n Node) ControllerAddress(id kafka.NodeID) string {
	for _, c := range n.Cluster.Controllers {
		if node, address, ok := strings.Cut(c, "@"); ok && node == id.String() {
			return address
		}
	}
	return ""
}

// addressFault reports an address that is not host:port, unless it is excused.
func addressFault(fault faultFunc, key, address string, excused bool) {
	if excused {
		return
	}
	if why := AddressFault(address); why != "" {
		fault(key, address, why, "host:port")
	}
}

// AddressFault says what is wrong with a host:port, or "".
func AddressFault(address string) string {
	i := strings.LastIndexByte(address, ':')
	if i < 0 {
		return "has no port"
	}
	host := address[:i]
	if _, err := strconv.ParseUint(address[i+1:], 10, 16); err != nil {
		return "has no port from 0 to 65535"
	}
	if strings.Contains(host, ":") && !(strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")) {
		return "has an IPv6 address without brackets"
	}
	return ""
}

// isWildcard says that an address binds every interface.
func isWildcard(address string) bool {
	host := strings.Trim(address[:max(strings.LastIndexByte(address, ':'), 0)], "[]")
	if host == "" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}
