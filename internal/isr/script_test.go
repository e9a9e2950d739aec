package isr

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"strandline.dev/internal/kafka"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected output in testdata")

// TestScripts runs testdata/*.txt. A script is commands, one a line; the lines after a command that begin with "  " are what it
// prints: the effects, then the state. Lines that begin with # are comments.
//
//	lead isr=1,2,3 min=2 epoch=4 end=10 stored=10 hw=7   node 1 begins to lead replicas 1,2,3
//	state isr=1,2 min=2 pe=2 [epoch=4] [replicas=1,2,3]  a committed state arrives
//	propose 1,2                                          an ISR change is opened
//	stored 12                                            the leader's own stored end
//	fetch 2 12 [epoch=4]                                 replica 2 fetches at 12 and is verified there
//	report 2 12 [epoch=4]                                replica 2 reports 12 as stored
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got, err := runScript(string(want))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if got == string(want) {
				return
			}
			if *rewrite {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s:\n%s\nwant:\n%s", file, got, want)
		})
	}
}

type script struct {
	leader *Leader
	out    strings.Builder
}

func runScript(text string) (string, error) {
	var s script
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if strings.HasPrefix(line, "  ") {
			continue
		}
		s.out.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.run(strings.Fields(line)); err != nil {
			return "", fmt.Errorf("line %d: %w", n, err)
		}
	}
	return s.out.String(), nil
}

func (s *script) run(words []string) error {
	a := newArgs(words[1:])
	var e Effects
	switch words[0] {
	case "lead":
		s.leader, e = New(Start{
			Self: 1, State: a.state(), End: a.offset("end"), Stored: a.offset("stored"), HighWatermark: a.offset("hw"),
		})
	case "state":
		e = s.leader.Update(a.state())
	case "propose":
		s.leader.Propose(nodes(a.plain[0]))
	case "stored":
		e = s.leader.Stored(a.number(0))
	case "fetch":
		e = s.leader.Fetched(kafka.NodeID(a.number(0)), a.epoch(s.leader), a.number(1))
	case "report":
		e = s.leader.Reported(kafka.NodeID(a.number(0)), a.epoch(s.leader), a.number(1))
	default:
		return fmt.Errorf("unknown command %q", words[0])
	}
	s.print(e)
	return a.err
}

func (s *script) print(e Effects) {
	if e.Advanced {
		fmt.Fprintf(&s.out, "  -> advanced to %d\n", e.HighWatermark)
	}
	if e.BelowMinISR {
		fmt.Fprintln(&s.out, "  -> below min ISR")
	}
	if e.Lost {
		fmt.Fprintf(&s.out, "  -> replica %d lost bytes\n", e.LostReplica)
	}
	l := s.leader
	fmt.Fprintf(&s.out, "  hw=%d admits=%v settled=%v withheld=%v\n", l.HighWatermark(), l.Admits(), l.Settled(), l.Withheld())
}

type args struct {
	named map[string]string
	plain []string
	err   error
}

func newArgs(words []string) *args {
	a := &args{named: map[string]string{}}
	for _, w := range words {
		if k, v, ok := strings.Cut(w, "="); ok {
			a.named[k] = v
		} else {
			a.plain = append(a.plain, w)
		}
	}
	return a
}

func (a *args) parse(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil && a.err == nil {
		a.err = err
	}
	return n
}

func (a *args) get(key, otherwise string) string {
	if v, ok := a.named[key]; ok {
		return v
	}
	return otherwise
}

func (a *args) offset(key string) kafka.Offset { return kafka.Offset(a.parse(a.get(key, ""))) }
func (a *args) number(i int) kafka.Offset      { return kafka.Offset(a.parse(a.plain[i])) }

func (a *args) epoch(l *Leader) kafka.LeaderEpoch {
	return kafka.LeaderEpoch(a.parse(a.get("epoch", fmt.Sprint(l.Epoch()))))
}

func (a *args) state() kafka.PartitionState {
	return kafka.PartitionState{
		Replicas: nodes(a.get("replicas", "1,2,3")), ISR: nodes(a.get("isr", "")), Leader: 1,
		LeaderEpoch:     kafka.LeaderEpoch(a.parse(a.get("epoch", "1"))),
		PartitionEpoch:  kafka.PartitionEpoch(a.parse(a.get("pe", "1"))),
		EffectiveMinISR: int32(a.parse(a.get("min", "1"))),
	}
}

func nodes(s string) (ns []kafka.NodeID) {
	for f := range strings.SplitSeq(s, ",") {
		if n, err := strconv.Atoi(f); err == nil {
			ns = append(ns, kafka.NodeID(n))
		}
	}
	return ns
}
