package config

import (
	"errors"
	"flag"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write the present output into the files")

// TestEveryRowIsSound: defaults are valid, documented and bound once; names are unique over a scope.
func TestEveryRowIsSound(t *testing.T) {
	for _, scope := range []Scope{ScopeNode, ScopeBroker, ScopeTopic} {
		names := map[string]bool{}
		for _, s := range rowsOf(scope) {
			if names[s.Name] {
				t.Errorf("%v %s twice", scope, s.Name)
			}
			names[s.Name] = true
			if s.Doc == "" || !strings.HasSuffix(s.Doc, ".") {
				t.Errorf("%s: no sentence describes it", s.Name)
			}
			for _, dev := range []bool{false, true} {
				if v := s.DefaultFor(dev); v != "" || s.Type == Bool {
					if err := s.Check(v); err != nil {
						t.Errorf("default: %v", err)
					}
				}
			}
			bound := 0
			for _, b := range []bool{s.node != nil, s.broker != nil, s.topic != nil} {
				if b {
					bound++
				}
			}
			if bound > 1 || scope == ScopeNode && s.node == nil {
				t.Errorf("%s is bound to %d fields", s.Name, bound)
			}
		}
	}
	for _, s := range topicRows {
		if s.Synonym != "" && rowsByName[ScopeBroker][s.Synonym] == nil {
			t.Errorf("%s: no broker setting %s", s.Name, s.Synonym)
		}
	}
	Defaults()
	Dev()
}

func TestTopicDefaults(t *testing.T) {
	c, err := ResolveTopic(nil, DefaultBroker(false), false)
	if err != nil {
		t.Fatal(err)
	}
	want := Topic{
		Retention: 14 * 24 * time.Hour, RetentionBytes: -1, MinimumRetention: 14 * 24 * time.Hour, SegmentBytes: 1 << 30, SegmentAge: 7 * 24 * time.Hour,
		MaxBatchBytes: 1<<20 + RecordOverheadMax, MaxRecordBytes: 1 << 20, TimestampBefore: math.MaxInt64, TimestampAfter: time.Hour,
		CompressionType: "producer", CleanupPolicy: []string{"delete"}, MinInsync: 1, AcksMinimum: "0", DeleteRecovery: 24 * time.Hour,
		DedupHeader: "record-id", IndexInterval: 4096,
		DeleteRetention: 24 * time.Hour, MaxCompactionLag: math.MaxInt64, MinDirtyRatio: 0.5,
	}
	if !slices.Equal(c.CleanupPolicy, want.CleanupPolicy) {
		t.Errorf("cleanup.policy %v", c.CleanupPolicy)
	}
	c.CleanupPolicy, want.CleanupPolicy = nil, nil
	if !sameTopic(c, want) {
		t.Errorf("\nhave %+v\nwant %+v", c, want)
	}
	d, err := ResolveTopic(nil, DefaultBroker(true), true)
	if err != nil || d.Flush != FlushReplicated || d.MinimumRetention != 0 || d.DeleteRecovery != 0 {
		t.Errorf("dev: %+v %v", d, err)
	}
}

func sameTopic(a, b Topic) bool {
	a.CleanupPolicy, b.CleanupPolicy = nil, nil
	return slices.Equal(topicFields(a), topicFields(b))
}

func topicFields(c Topic) []any {
	var out []any
	for _, s := range topicRows {
		if s.topic == nil || s.Type == List {
			continue
		}
		switch p := s.topic(&c).(type) {
		case *time.Duration:
			out = append(out, *p)
		case *int64:
			out = append(out, *p)
		case *int:
			out = append(out, *p)
		case *string:
			out = append(out, *p)
		case *Flush:
			out = append(out, *p)
		case *TimestampType:
			out = append(out, *p)
		}
	}
	return out
}

// TestTopicInherits: what is set on the topic, else on this broker, else on all brokers, else in the file, else the default.
func TestTopicInherits(t *testing.T) {
	b, err := ResolveBroker(map[string]string{"log.retention.hours": "1"}, false)
	if err != nil {
		t.Fatal(err)
	}
	retention := func(b Broker, overrides map[string]string) time.Duration {
		c, err := ResolveTopic(overrides, b, false)
		if err != nil {
			t.Fatal(err)
		}
		return c.Retention
	}
	if got := retention(b, nil); got != time.Hour {
		t.Errorf("from the file: %v", got)
	}
	all, err := b.WithDynamic(map[string]string{"log.retention.ms": "2000"}, nil)
	if err != nil || retention(all, nil) != 2*time.Second {
		t.Errorf("for all brokers: %v %v", retention(all, nil), err)
	}
	one, _ := b.WithDynamic(map[string]string{"log.retention.ms": "2000"}, map[string]string{"log.retention.ms": "3000"})
	if retention(one, nil) != 3*time.Second {
		t.Errorf("for one broker: %v", retention(one, nil))
	}
	if retention(one, map[string]string{"retention.ms": "-1"}) != Unlimited {
		t.Error("of the topic")
	}
	if _, err := b.WithDynamic(map[string]string{"num.partitions": "x"}, nil); err == nil {
		t.Error("a bad dynamic value is taken")
	}
	both, _ := ResolveBroker(map[string]string{"log.retention.hours": "1", "log.retention.minutes": "2"}, false)
	if retention(both, nil) != 2*time.Minute {
		t.Error("minutes do not win over hours")
	}
}

// TestMinInsyncDefault: the default that was fixed at creation counts until an administrator sets the config, and is described as a default.
func TestMinInsyncDefault(t *testing.T) {
	stored := map[string]string{DefaultMinInsyncKey: "2"}
	c, err := ResolveTopic(stored, DefaultBroker(false), false)
	if err != nil || c.MinInsync != 2 {
		t.Fatalf("%d %v", c.MinInsync, err)
	}
	e := find(t, DescribeTopic(stored, DefaultBroker(false), false), MinInsyncKey)
	if *e.Value != "2" || e.Source != SourceDefault {
		t.Errorf("%s %v", *e.Value, e.Source)
	}
	stored[MinInsyncKey] = "1"
	e = find(t, DescribeTopic(stored, DefaultBroker(false), false), MinInsyncKey)
	if *e.Value != "1" || e.Source != SourceTopic || len(e.Synonyms) != 2 || *e.Synonyms[1].Value != "2" {
		t.Errorf("%+v", e)
	}
	for _, e := range DescribeTopic(stored, DefaultBroker(false), false) {
		if e.Name == DefaultMinInsyncKey {
			t.Error("the stored default is shown")
		}
	}
	if ValidateTopic(stored) == nil {
		t.Error("a client may set the stored default")
	}
}

func find(t *testing.T, entries []Entry, name string) Entry {
	t.Helper()
	for _, e := range entries {
		if e.Name == name {
			return e
		}
	}
	t.Fatalf("%s is not described", name)
	return Entry{}
}

// TestDescribeSources: what nobody set is a default, so that tools which compare (Terraform) see no difference they did not make; what was set has
// its source, with the values behind it as synonyms.
func TestDescribeSources(t *testing.T) {
	for _, dev := range []bool{false, true} {
		for _, e := range DescribeTopic(nil, DefaultBroker(dev), dev) {
			if e.Source != SourceDefault || e.Doc == "" || e.ReadOnly || e.Type < 1 || e.Type > 9 || e.Value == nil {
				t.Errorf("%s: %+v", e.Name, e)
			}
		}
	}
	b, err := ResolveBroker(map[string]string{"log.retention.ms": "1000"}, false)
	if err != nil {
		t.Fatal(err)
	}
	b, _ = b.WithDynamic(map[string]string{"log.retention.ms": "2000"}, nil)
	e := find(t, DescribeTopic(map[string]string{"retention.ms": "3000"}, b, false), "retention.ms")
	var got []string
	for _, s := range e.Synonyms {
		got = append(got, s.Name+"="+*s.Value+"/"+string('0'+rune(s.Source)))
	}
	want := "retention.ms=3000/1 log.retention.ms=2000/3 log.retention.ms=1000/4 log.retention.ms=1209600000/5"
	if strings.Join(got, " ") != want || e.Source != SourceTopic || Type(e.Type) != Long {
		t.Errorf("%v", got)
	}
	if e := find(t, DescribeTopic(nil, b, false), "retention.ms"); e.Source != SourceClusterDefault || *e.Value != "2000" {
		t.Errorf("%+v", e)
	}
	if e := find(t, DescribeBroker(b), "socket.request.max.bytes"); !e.ReadOnly || e.Source != SourceDefault || *e.Value != "104857600" {
		t.Errorf("%+v", e)
	}
	if e := find(t, DescribeBroker(b), "log.retention.minutes"); e.Value != nil {
		t.Errorf("a setting without a value has %q", *e.Value)
	}
	if !slices.IsSortedFunc(DescribeBroker(b), func(a, b Entry) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("not in name order")
	}
}

// TestK53_Refusals: each refusal names key, value, why and what is allowed, or the nearest name.
func TestK53_Refusals(t *testing.T) {
	for in, want := range map[string]string{
		"retention.ms=abc":                      `retention.ms: value "abc" is not an integer; allowed: a number of at least -1`,
		"retention.ms=-2":                       `retention.ms: value "-2" is below the minimum; allowed: a number of at least -1`,
		"segment.bytes=99999999999":             `segment.bytes: value "99999999999" does not fit in 32 bits; allowed: a number from 1024 to 2147483647`,
		"cleanup.policy=delet":                  `cleanup.policy: value "delet" is not one of the accepted values; allowed: a comma-separated list of delete, compact`,
		"compression.type=brotli":               `compression.type: value "brotli" is not one of the accepted values; allowed: producer, uncompressed, gzip, snappy, lz4, zstd`,
		"remote.storage.enable=true":            `remote.storage.enable: value "true" is refused: there is no remote storage; allowed: only false`,
		"preallocate=yes":                       `preallocate: value "yes" is not a boolean; allowed: true, false`,
		"min.cleanable.dirty.ratio=1.5":         `min.cleanable.dirty.ratio: value "1.5" is above the maximum; allowed: a number from 0 to 1`,
		"min.cleanable.dirty.ratio=x":           `min.cleanable.dirty.ratio: value "x" is not a number; allowed: a number from 0 to 1`,
		"strandline.dedup.window.ms=-1":         `strandline.dedup.window.ms: value "-1" is below the minimum; allowed: a number of at least 0`,
		"strandline.flush=always":               `strandline.flush: value "always" is not one of the accepted values; allowed: synced, replicated`,
		"retention=5":                           `unknown topic config "retention"; did you mean "retention.ms"?`,
		"flush=synced":                          `unknown topic config "flush"; did you mean "strandline.flush"?`,
		"completely.different.name.of.nothing=": `unknown topic config "completely.different.name.of.nothing"`,
	} {
		k, v, _ := strings.Cut(in, "=")
		err := ValidateTopic(map[string]string{k: v})
		if err == nil || err.Error() != want {
			t.Errorf("%s\nhave %v\nwant %s", in, err, want)
		}
		if err != nil && errors.Is(err, ErrInvalid) == errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v is neither or both", in, err)
		}
	}
	long := strings.Repeat("x", ValueLenMax+1)
	if err := ValidateTopic(map[string]string{"strandline.dedup.header": long}); err == nil || len(err.Error()) > 200 {
		t.Errorf("long value: %.100v", err)
	}
	if err := ValidateBroker(map[string]string{"socket.request.max.bytes": "1000"}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("read-only: %v", err)
	}
	if err := ValidateBroker(map[string]string{"log.retention.ms": "1000", "num.partitions": "3"}); err != nil {
		t.Error(err)
	}
	// The first fault does not depend on map order.
	for range 20 {
		err := ValidateTopic(map[string]string{"a": "", "b": "", "c": ""})
		if err == nil || !strings.Contains(err.Error(), `"a"`) {
			t.Fatal(err)
		}
	}
}

func TestNearest(t *testing.T) {
	for in, want := range map[string]string{
		"retentoin.ms": "retention.ms", "max.record.bytes": "strandline.max.record.bytes", "MAX.MESSAGE.BYTES": "max.message.bytes", "zzz": "",
		"min.insync.replica": "min.insync.replicas", "log.retention.ms": "retention.ms",
	} {
		if got := Nearest(ScopeTopic, in); got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

// validateText is the fault of a node of these settings, or "".
func (Node) validateText(settings ...string) string {
	values := map[string]string{"node.id": "1"}
	for i := 0; i < len(settings); i += 2 {
		values[settings[i]] = settings[i+1]
	}
	n, err := Build(values, false)
	if err = errors.Join(err, n.Validate()); err != nil {
		return err.Error()
	}
	return ""
}

// TestNodeValidate: every fault of a file is named at once.
func TestNodeValidate(t *testing.T) {
	n, err := Build(map[string]string{
		"node.id": "0", "roles": "", "http.address": "nowhere", "cluster.address": "::1:80", "cluster.controllers": "1@a:1,1@b:2,x,4@c:99999",
		"listeners.0.name": "a", "listeners.0.address": "0.0.0.0:9092", "listeners.1.name": "a", "listeners.1.address": "0.0.0.0:9092",
	}, false)
	if err != nil {
		t.Fatal(err)
	}
	got := n.Validate()
	if got == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		"node.id is not set", "roles is empty", "http.address: value \"nowhere\" has no port", "cluster.address: value \"::1:80\" has an IPv6 address without brackets",
		"has 4 controllers", "repeats node id 1", "\"x\" has no node id", "\"c:99999\" has no port", "listeners.1.name: value \"a\" is the name of another",
		"listeners.1.address: value \"0.0.0.0:9092\" is the address of another", "listeners.0.advertise: value \"auto\" does not say",
	} {
		if !strings.Contains(got.Error(), want) {
			t.Errorf("not named: %s\n%v", want, got)
		}
	}
	if got := n.validateText("tls.cluster.cert", "c.pem", "cluster.address", "0.0.0.0:19091"); !strings.Contains(got, "tls.cluster.key is not set, and others of tls.cluster are") ||
		!strings.Contains(got, `cluster.address: value "0.0.0.0:19091" does not say under which address other nodes reach this one`) {
		t.Error(got)
	}
	if got := n.validateText("tls.cluster.cert", "c", "tls.cluster.key", "k", "tls.cluster.ca", "a", "cluster.address", "0.0.0.0:1", "cluster.controllers", "1@h:1"); got != "" {
		t.Error(got)
	}
	if got := n.validateText("roles", "broker", "cluster.controllers", "9@h:1"); !strings.Contains(got, "cluster.address is empty: this node is to join the cluster of controller 9") {
		t.Error(got)
	}
	if err := Dev().Validate(); err != nil {
		t.Errorf("the defaults of dev: %v", err)
	}
}

func TestReference(t *testing.T) {
	const file = "../../docs/reference/config.md"
	got := Reference()
	if *rewrite {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != got {
		t.Errorf("%s is not what the table says (run with -rewrite): %v", file, err)
	}
	for _, name := range slices.Sorted(maps.Keys(rowsByName[ScopeTopic])) {
		if strings.Contains(got, "`"+name+"`") == rowsByName[ScopeTopic][name].hidden {
			t.Errorf("%s: missing, or shown although hidden", name)
		}
	}
}

func BenchmarkResolveTopic(b *testing.B) {
	broker := DefaultBroker(false)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ResolveTopic(map[string]string{"retention.ms": "5"}, broker, false); err != nil {
			b.Fatal(err)
		}
	}
}

// TestBroker_WithPreset: a preset is under what the file says, and stays when dynamic values change.
func TestBroker_WithPreset(t *testing.T) {
	b, err := ResolveBroker(map[string]string{"num.partitions": "5"}, true)
	if err != nil {
		t.Fatal(err)
	}
	b, err = b.WithPreset(map[string]string{"num.partitions": "7", "default.replication.factor": "3"})
	if err != nil {
		t.Fatal(err)
	}
	for _, dynamic := range []map[string]string{nil, {"message.max.bytes": "1000"}} {
		if b, err = b.WithDynamic(dynamic, nil); err != nil || b.NumPartitions != 5 || b.DefaultReplicationFactor != 3 {
			t.Errorf("%v: %v, %d partitions, %d replicas", dynamic, err, b.NumPartitions, b.DefaultReplicationFactor)
		}
	}
	if _, err := b.WithPreset(map[string]string{"no.such.setting": "1"}); err == nil {
		t.Error("an unknown setting was accepted")
	}
}
