package interop

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// taskTimeMax bounds one call of a tool; a JVM alone takes 1 to 3 s here.
const taskTimeMax = 60 * time.Second

// task is one call of one of Kafka's own command-line tools.
type task struct {
	// tool is the script's name without kafka- and .sh; class is what it runs.
	tool, class, name string
	// args, after --bootstrap-server unless {addr} is among them; {dir} is a directory with files.
	args []string
	// want must be in the output, every one.
	want []string
}

const (
	toolsPackage      = "org.apache.kafka.tools."
	topicsClass       = toolsPackage + "TopicCommand"
	configsClass      = toolsPackage + "ConfigCommand"
	groupsClass       = toolsPackage + "consumer.group.ConsumerGroupCommand"
	offsetsClass      = toolsPackage + "GetOffsetShell"
	transactionsClass = toolsPackage + "TransactionsCommand"
)

// tasks are run in order on one broker.
func tasks() []task {
	var out []task
	out = append(out, topicTasks()...)
	out = append(out, recordTasks()...)
	out = append(out, groupTasks()...)
	return append(out, clusterTasks()...)
}

func topicTasks() []task {
	return []task{
		{"topics", topicsClass, "create", words("--create --topic tools --partitions 2 --replication-factor 1 --config retention.ms=3600000"), words("Created")},
		{"topics", topicsClass, "list", words("--list"), words("tools")},
		{"topics", topicsClass, "alter partitions", words("--alter --topic tools --partitions 3"), nil},
		{"topics", topicsClass, "describe", words("--describe --topic tools"), []string{"PartitionCount: 3", "retention.ms=3600000", "Leader: 1"}},
		{"topics", topicsClass, "describe under-replicated", words("--describe --under-replicated-partitions"), nil},
		{"topics", topicsClass, "create with defaults", words("--create --topic gone"), words("Created")},
		{"topics", topicsClass, "delete", words("--delete --topic gone"), nil},
		{"configs", configsClass, "alter topic", words("--alter --entity-type topics --entity-name tools --add-config retention.ms=7200000,max.message.bytes=2000000"), words("Completed")},
		{"configs", configsClass, "describe topic", words("--describe --entity-type topics --entity-name tools"), words("retention.ms=7200000 max.message.bytes=2000000")},
		{"configs", configsClass, "delete topic config", words("--alter --entity-type topics --entity-name tools --delete-config max.message.bytes"), words("Completed")},
		{"configs", configsClass, "describe topic with defaults", words("--describe --all --entity-type topics --entity-name tools"), words("cleanup.policy=delete DYNAMIC_TOPIC_CONFIG:retention.ms=7200000")},
		{"configs", configsClass, "set quotas of a user", words("--alter --entity-type users --entity-name shop --add-config producer_byte_rate=1000000,request_percentage=200"), words("Completed")},
		{"configs", configsClass, "of a user with a client id", words("--alter --entity-type users --entity-name shop --entity-type clients --entity-name batch --add-config consumer_byte_rate=500000"), words("Completed")},
		{"configs", configsClass, "of each client id", words("--alter --entity-type clients --entity-default --add-config controller_mutation_rate=1000"), words("Completed")},
		{"configs", configsClass, "of an address", words("--alter --entity-type ips --entity-name 10.9.8.7 --add-config connection_creation_rate=10"), words("Completed")},
		{"configs", configsClass, "describe quotas", words("--describe --entity-type users --entity-name shop"), words("producer_byte_rate=1000000.0 request_percentage=200.0")},
		{"configs", configsClass, "delete a quota", words("--alter --entity-type users --entity-name shop --delete-config request_percentage"), words("Completed")},
		{"configs", configsClass, "describe broker with defaults", words("--describe --all --entity-type brokers --entity-name 1"), words("message.max.bytes=")},
	}
}

func recordTasks() []task {
	return []task{
		{"producer-perf-test", toolsPackage + "ProducerPerformance", "10,000 records", words("--topic tools --num-records 10000 --record-size 100 --throughput -1"), []string{"10000 records sent"}},
		{"verifiable-producer", toolsPackage + "VerifiableProducer", "500 messages with acks=all", words("--topic tools --max-messages 500 --acks -1"), []string{`"sent":500`, `"acked":500`}},
		{"get-offsets", offsetsClass, "latest", words("--topic tools --time latest"), words("tools:0: tools:1: tools:2:")},
		{"get-offsets", offsetsClass, "earliest", words("--topic tools --time earliest"), words("tools:0:0 tools:1:0 tools:2:0")},
		{"get-offsets", offsetsClass, "by time", words("--topic tools --time 1000"), words("tools:0:0")},
		{"get-offsets", offsetsClass, "max timestamp", words("--topic tools --time max-timestamp"), words("tools:0:")},
		{"verifiable-consumer", toolsPackage + "VerifiableConsumer", "10,500 messages in a group", words("--topic tools --group-id tools-group --max-messages 10500 --reset-policy earliest"), words("offsets_committed shutdown_complete")},
		{"verifiable-consumer", toolsPackage + "VerifiableConsumer", "10,500 messages in a consumer group", words("--topic tools --group-id tools-consumers --group-protocol consumer --max-messages 10500 --reset-policy earliest"), words("offsets_committed shutdown_complete")},
		{"console-consumer", toolsPackage + "consumer.ConsoleConsumer", "from the beginning", words("--topic tools --from-beginning --max-messages 10500 --timeout-ms 30000"), []string{"Processed a total of 10500 messages"}},
		{"delete-records", toolsPackage + "DeleteRecordsCommand", "one partition", words("--offset-json-file {dir}/delete.json"), []string{"low_watermark: 5"}},
		{"get-offsets", offsetsClass, "earliest after delete-records", words("--topic tools --time earliest"), words("tools:0:5 tools:1:0")},
		{"log-dirs", toolsPackage + "LogDirsCommand", "describe", words("--describe --topic-list tools"), []string{`"partition":"tools-0"`, `"size":`, `"error":null`}},
	}
}

func groupTasks() []task {
	return []task{
		{"consumer-groups", groupsClass, "list", words("--list"), words("tools-group")},
		{"consumer-groups", groupsClass, "list by type", words("--list --type consumer"), words("tools-consumers")},
		{"consumer-groups", groupsClass, "describe", words("--describe --group tools-group"), words("CURRENT-OFFSET LAG tools-group")},
		{"consumer-groups", groupsClass, "describe state", words("--describe --state --group tools-group"), words("Empty")},
		{"consumer-groups", groupsClass, "describe members", words("--describe --members --group tools-group"), []string{"no active members"}},
		{"consumer-groups", groupsClass, "reset offsets", words("--reset-offsets --to-earliest --execute --topic tools --group tools-group"), words("NEW-OFFSET tools-group")},
		{"consumer-groups", groupsClass, "delete offsets", words("--delete-offsets --topic tools:0 --group tools-group"), words("Successful")},
		{"consumer-groups", groupsClass, "delete", words("--delete --group tools-group"), words("successful")},
		{"consumer-groups", groupsClass, "describe a consumer group", words("--describe --group tools-consumers"), words("CURRENT-OFFSET LAG tools-consumers")},
		{"consumer-groups", groupsClass, "its state", words("--describe --state --group tools-consumers"), words("Empty uniform")},
		{"consumer-groups", groupsClass, "reset its offsets", words("--reset-offsets --to-earliest --execute --topic tools --group tools-consumers"), words("NEW-OFFSET tools-consumers")},
		{"consumer-groups", groupsClass, "delete it", words("--delete --group tools-consumers"), words("successful")},
		{"groups", toolsPackage + "GroupsCommand", "list", words("--list"), nil},
	}
}

func clusterTasks() []task {
	return []task{
		{"broker-api-versions", toolsPackage + "BrokerApiVersionsCommand", "list", nil, []string{"Produce(0): 0 to", "isFenced: false"}},
		{"cluster", toolsPackage + "ClusterTool", "cluster id", words("cluster-id --bootstrap-server {addr}"), []string{"Cluster ID:"}},
		{"cluster", toolsPackage + "ClusterTool", "list endpoints", words("list-endpoints --bootstrap-server {addr}"), words("broker")},
		{"features", toolsPackage + "FeatureCommand", "describe", words("describe"), nil},
		{"leader-election", toolsPackage + "LeaderElectionCommand", "preferred, all partitions", words("--election-type preferred --all-topic-partitions"), nil},
		{"metadata-quorum", toolsPackage + "MetadataQuorumCommand", "status", words("describe --status"), []string{"LeaderId:", "1"}},
		{"metadata-quorum", toolsPackage + "MetadataQuorumCommand", "replication", words("describe --replication"), words("Leader")},
		{"reassign-partitions", toolsPackage + "reassign.ReassignPartitionsCommand", "list", words("--list"), []string{"No partition reassignments found"}},
		{"transactions", transactionsClass, "describe producers", words("describe-producers --topic tools --partition 1"), words("ProducerId")},
	}
}

func words(s string) []string { return strings.Fields(s) }

// runTools runs every task on one broker and returns them; a failed one fails the test and the rest go on.
func runTools(t *testing.T) []task {
	t.Helper()
	b := startBroker(t)
	dir := t.TempDir()
	plan := `{"version":1,"partitions":[{"topic":"tools","partition":0,"offset":5}]}`
	if err := os.WriteFile(filepath.Join(dir, "delete.json"), []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	jars := filepath.Base(filepath.Dir(cached(t, "java", "kafka-tools-"+pinned(t, pin{"maven", "org.apache.kafka:kafka-tools", ""}), "x")))
	log, err := os.Create(cached(t, "logs", "kafka-tools.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	all := tasks()
	for _, k := range all {
		started := time.Now()
		out, err := k.call(t, b.addr, cached(t, "java", jars)+"/*", dir)
		fmt.Fprintf(log, "== %s %s (%.1fs) %v\n%s\n", k.tool, k.name, time.Since(started).Seconds(), err, out)
		for _, w := range k.want {
			if err == nil && !strings.Contains(out, w) {
				err = fmt.Errorf("the output lacks %q", w)
			}
		}
		if err != nil {
			t.Errorf("%s, %s: %v\n%s", k.tool, k.name, err, last(out))
		}
	}
	if t.Failed() {
		t.Logf("broker: %s", last(b.stderr.String()))
	}
	return all
}

// call runs the tool; an exception in its output counts as a failure, since some tools exit 0 with one.
func (k task) call(t *testing.T, addr, jars, dir string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), taskTimeMax)
	defer cancel()
	args := []string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", jars, k.class}
	if !slices.Contains(k.args, "{addr}") {
		args = append(args, "--bootstrap-server", addr)
	}
	for _, a := range k.args {
		args = append(args, strings.NewReplacer("{dir}", dir, "{addr}", addr).Replace(a))
	}
	out, err := exec.CommandContext(ctx, "java", args...).CombinedOutput()
	if err == nil && strings.Contains(string(out), "Exception") {
		err = fmt.Errorf("the output holds an exception")
	}
	return string(out), err
}
