package load

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"strandline.dev/internal/config"
)

// contractExample is the file of contract.md section 2, which must keep working as it is.
const contractExample = `node: {id: 1, rack: a}
roles: [controller, broker]
data: {dir: ./n1}
cluster:
  address: 127.0.0.1:19091            # node to node: replication, raft, control
  controllers: ["1@127.0.0.1:19091", "2@127.0.0.1:19092", "3@127.0.0.1:19093"]
listeners:                            # for clients; each may carry tls: true, sasl: [SCRAM-SHA-512, PLAIN, OAUTHBEARER]
  - {name: plain, address: 127.0.0.1:9092, advertise: 127.0.0.1:9092}
http: {address: 127.0.0.1:8080}
kafka:                                # broker settings under Kafka's own names
  num.partitions: 1
  default.replication.factor: 3
  auto.create.topics.enable: false
`

func TestContractExampleLoads(t *testing.T) {
	n, origins, err := Load([]byte(contractExample), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Validate(); err != nil {
		t.Fatal(err)
	}
	if n.Node.ID != 1 || n.Node.Rack != "a" || len(n.Roles) != 2 || n.Data.Dir != "./n1" || n.Cluster.Address != "127.0.0.1:19091" ||
		len(n.Cluster.Controllers) != 3 || n.HTTP.Address != "127.0.0.1:8080" || n.Kafka.DefaultReplicationFactor != 3 || n.Kafka.AutoCreateTopics {
		t.Errorf("%+v", n)
	}
	if len(n.Listeners) != 1 || !reflect.DeepEqual(n.Listeners[0], config.Listener{Name: "plain", Address: "127.0.0.1:9092", Advertise: "127.0.0.1:9092", ClientCert: config.CertNone}) {
		t.Errorf("%+v", n.Listeners)
	}
	for name, want := range map[string]string{
		"node.id": "file line 1", "listeners.0.name": "file line 8", "kafka.num.partitions": "file line 11", "log.level": "default",
	} {
		if got := origin(origins, name).From; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func origin(list []Origin, name string) Origin {
	for _, o := range list {
		if o.Name == name {
			return o
		}
	}
	return Origin{}
}

// TestPrecedence: flag over environment over file over default, each with its origin.
func TestPrecedence(t *testing.T) {
	file := []byte("node: {id: 1, rack: f}\nlog: {level: error}\nkafka:\n  num.partitions: 2\n  log.retention.ms: 5\n")
	env := []string{"STRANDLINE_NODE_ID=2", "STRANDLINE_LOG_LEVEL=warn", "STRANDLINE_KAFKA_NUM_PARTITIONS=3", "STRANDLINE_LISTENERS_0_ADDRESS=127.0.0.1:1", "PATH=/bin"}
	flags := map[string]string{"node.id": "3", "listeners-0-name": "x"}
	n, origins, err := Load(file, env, flags)
	if err != nil {
		t.Fatal(err)
	}
	if n.Node.ID != 3 || n.Log.Level != "warn" || n.Node.Rack != "f" || n.Kafka.NumPartitions != 3 {
		t.Errorf("%+v", n)
	}
	if len(n.Listeners) != 1 || n.Listeners[0].Name != "x" || n.Listeners[0].Address != "127.0.0.1:1" {
		t.Errorf("%+v", n.Listeners)
	}
	for name, want := range map[string]Origin{
		"node.id":                {"node.id", "3", "flag --node-id"},
		"log.level":              {"log.level", "warn", "env STRANDLINE_LOG_LEVEL"},
		"node.rack":              {"node.rack", "f", "file line 1"},
		"http.address":           {"http.address", "127.0.0.1:8080", "default"},
		"kafka.num.partitions":   {"kafka.num.partitions", "3", "env STRANDLINE_KAFKA_NUM_PARTITIONS"},
		"kafka.log.retention.ms": {"kafka.log.retention.ms", "5", "file line 5"},
		"listeners.0.name":       {"listeners.0.name", "x", "flag --listeners-0-name"},
	} {
		if got := origin(origins, name); got != want {
			t.Errorf("have %+v, want %+v", got, want)
		}
	}
	n, origins, err = LoadDev(nil, nil, nil)
	if err != nil || !n.Kafka.AutoCreateTopics || origin(origins, "kafka.auto.create.topics.enable").From != "dev default" {
		t.Errorf("dev: %v %+v", err, origin(origins, "kafka.auto.create.topics.enable"))
	}
}

// TestFaultsAreNamed: every fault is named with where it stands, and unknown names with the nearest.
func TestFaultsAreNamed(t *testing.T) {
	for file, want := range map[string]string{
		"node: {di: 1}":                             `file line 1: unknown node setting "node.di"; did you mean "node.id"?`,
		"kafka:\n  num.partitoins: 1":               `file line 2: unknown broker setting "kafka.num.partitoins"; did you mean "kafka.num.partitions"?`,
		"num.partitions: 1":                         `file line 1: unknown node setting "num.partitions"; did you mean "kafka.num.partitions"?`,
		"listeners: [{name: a, adress: b:1}]":       `file line 1: unknown node setting "listeners.0.adress"; did you mean "listeners.0.address"?`,
		"listenres: [{address: b:1}]":               `file line 1: unknown node setting "listenres.0.address"; did you mean "listeners.0.address"?`,
		"listenres: [{adress: b:1}]":                `unknown node setting "listenres.0.adress"; did you mean "listeners"?`,
		"kafkaa: {num.partitions: 1}":               `unknown node setting "kafkaa.num.partitions"; did you mean "kafka.num.partitions"?`,
		"node: {id: x}":                             `file line 1: node.id: value "x" is not an integer; allowed: a number from 1 to 2147483647`,
		"kafka: {num.partitions: 0}":                `file line 1: num.partitions: value "0" is below the minimum; allowed: a number from 1 to 10000`,
		"broker: {session: {timeout: 1}}":           `file line 1: broker.session.timeout: value "1" is not a duration; allowed: a duration such as 2s from 500ms to 1h0m0s`,
		"disk: {limit.percent: 101}":                `file line 1: disk.limit.percent: value "101" is above the maximum; allowed: a number from 0 to 100`,
		"disk: {limit.byte: 1}":                     `file line 1: unknown node setting "disk.limit.byte"; did you mean "disk.limit.bytes"?`,
		"roles: [broker, boss]":                     `file line 1: roles: value "broker,boss" is not one of the accepted values; allowed: a comma-separated list of controller, broker`,
		"node: {id: 1}\nnode: {id: 2}":              `configuration file, line 2: node.id is set already in line 1`,
		"a: [1, {b: 2}]":                            `configuration file, line 1: a: a list has either values or keys`,
		"- a":                                       `configuration file, line 1: want keys and values`,
		"x: &a [1]\ny: *a":                          `configuration file, line 2: y: want a value, a list or keys`,
		"roles: [\"a,b\"]":                          `configuration file, line 1: roles: an item cannot have a comma in it`,
		"node: {id: 1, rack: a}\nnode.id: 2":        `configuration file, line 2: node.id is set already in line 1`,
		"node: [":                                   `configuration file: yaml`,
		"node: {id: 1}\nlog: {levle: info, x.y: 1}": `did you mean "log.level"?`,
	} {
		_, _, err := Load([]byte(file), nil, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nhave %v\nwant %s", file, err, want)
		}
	}
	if _, _, err := Load(nil, []string{"STRANDLINE_NODE_DI=1"}, nil); err == nil || !strings.Contains(err.Error(), `did you mean "STRANDLINE_NODE_ID"?`) {
		t.Errorf("variable: %v", err)
	}
	if _, _, err := Load(nil, []string{"STRANDLINE_KAFKA_NUM_PARTITION=1"}, nil); err == nil || !strings.Contains(err.Error(), "STRANDLINE_KAFKA_NUM_PARTITIONS") {
		t.Errorf("variable: %v", err)
	}
	if _, _, err := Load(nil, nil, map[string]string{"node-di": "1"}); !errors.Is(err, config.ErrUnknown) {
		t.Errorf("flag: %v", err)
	}
}

// TestStrangersInTheEnvironment: variables of the client commands and of Kubernetes do not stop a node.
func TestStrangersInTheEnvironment(t *testing.T) {
	env := []string{
		"STRANDLINE_BROKERS=a:1", "STRANDLINE_HTTP=http://a", "STRANDLINE_PROFILE=x", "STRANDLINE_OUTPUT=json", "STRANDLINE_TIMEOUT=5s",
		"STRANDLINE_CLIENT_ID=x", "STRANDLINE_BIN=/x", "STRANDLINE_PORT=tcp://10.0.0.1:9092", "STRANDLINE_SERVICE_HOST=10.0.0.1",
		"STRANDLINE_SERVICE_PORT=9092", "STRANDLINE_PORT_9092_TCP_ADDR=10.0.0.1",
	}
	if _, _, err := Load(nil, env, nil); err != nil {
		t.Error(err)
	}
}

func FuzzParseYAML(f *testing.F) {
	f.Add([]byte(contractExample))
	f.Add([]byte("a: {b: [1, 2], c.d: null}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		values, err := ParseYAML(b)
		if err != nil {
			if !errors.Is(err, ErrSyntax) {
				t.Fatalf("not a syntax error: %v", err)
			}
			return
		}
		for name := range values {
			if name == "" {
				t.Fatal("a key without a name")
			}
		}
		if _, _, err := Load(b, nil, nil); err == nil {
			return
		}
	})
}
