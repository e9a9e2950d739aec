package interop

import (
	"flag"
	"path/filepath"
	"sync"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write README's table of clients from this run")

// programs are all clients, in the order of README's table.
func programs(t *testing.T) []program {
	golang := func(name, module, bin string) program {
		return program{name: name, language: "Go", pin: pin{"go", module, ""}, args: []string{cached(t, "bin", bin)}, sendsAll: true}
	}
	python := func(name, script string) program {
		return program{
			name: name, language: "Python", pin: pin{"pip", name, ""},
			args: []string{cached(t, "venv", "bin", "python"), "-u", "clients/python/" + script},
		}
	}
	java := func(version string) program {
		class := cached(t, "java", "classes") + ":" + cached(t, "java", "kafka-clients-"+version) + "/*"
		return program{
			name: "kafka-clients-" + version, language: "Java", pin: pin{"maven", "org.apache.kafka:kafka-clients", version},
			args: []string{"java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", class, "Walk"},
		}
	}
	kcat, err := filepath.Abs("clients/kcat/walk.sh")
	if err != nil {
		t.Fatal(err)
	}
	return []program{
		golang("franz-go", "github.com/twmb/franz-go", "franz"),
		golang("sarama", "github.com/IBM/sarama", "sarama"),
		golang("kafka-go", "github.com/segmentio/kafka-go", "kafkago"),
		golang("confluent-kafka-go", "github.com/confluentinc/confluent-kafka-go/v2", "confluent"),
		{name: "kcat", language: "C (librdkafka)", pin: pin{"debian", "kcat", ""}, args: []string{"bash", kcat}},
		python("confluent-kafka", "confluent_walk.py"),
		python("kafka-python", "kafka_python_walk.py"),
		python("aiokafka", "aiokafka_walk.py"),
		java("4.4.0"), java("3.9.2"), java("2.8.2"),
		{
			name: "kafkajs", language: "JavaScript", pin: pin{"npm", "kafkajs", ""}, args: []string{"node", "clients/js/walk.js"},
			env: []string{"NODE_PATH=" + cached(t, "js", "node_modules")},
		},
		{name: "rskafka", language: "Rust", pin: pin{"cargo", "rskafka", ""}, args: []string{cached(t, "rust", "debug", "rskafka-walk")}},
	}
}

// TestInterop walks every client, and Kafka's own tools, through the broker; README's table must say what happened.
func TestInterop(t *testing.T) {
	all := programs(t)
	done := &table{rows: map[string]outcome{}}
	t.Run("clients", func(t *testing.T) {
		for _, p := range all {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				out := p.run(t)
				if want := pinned(t, p.pin); out.version != want {
					t.Errorf("version %q, versions.txt says %s", out.version, want)
				}
				done.add(p.name, out)
			})
		}
		t.Run("kafka-tools", func(t *testing.T) {
			t.Parallel()
			done.tools(runTools(t))
		})
	})
	if t.Failed() || !done.complete(all) {
		return // a part of the run, by -run or by a failure, says nothing about the table
	}
	done.check(t, all)
}

// table gathers what the subtests report.
type table struct {
	mu    sync.Mutex
	rows  map[string]outcome
	tasks []task
}

func (d *table) add(name string, o outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rows[name] = o
}

func (d *table) tools(tasks []task) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tasks = tasks
}

func (d *table) complete(all []program) bool {
	return len(d.rows) == len(all) && len(d.tasks) > 0
}
