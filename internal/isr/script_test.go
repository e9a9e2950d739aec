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
	"time"

	"strandline.dev/internal/kafka"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the expected output in testdata")

// TestScripts runs testdata/*.txt. A script is commands, one a line; the lines after a command that begin with "  " are what it
// prints: the effects, then the state. Lines that begin with # are comments.
//
//	lead isr=1,2,3 min=2 epoch=4 end=10 stored=10 hw=7   node 1 begins to lead replicas 1,2,3
//	state isr=1,2 min=2 pe=2 [epoch=4] [replicas=1,2,3]  a committed state arrives
//	propose 1,2                                          an ISR change is opened, whatever the leader wants
//	stored 12                                            the leader's own stored end
//	fetch 2 12 [epoch=4] [broker=1] [seq=9]              replica 2 fetches at 12 and is verified there
//	report 2 12 [epoch=4] [broker=1] [seq=9] [start=0]   replica 2 reports 12 as stored
//	tick 5000 12                                         5 s have passed, the leader's written end is 12
//	heard 2 4000                                         anything was last heard from node 2 4 s after the start
//	change [registered=2:1,3:1]                          which ISR is to be proposed? (node:registration of those that may join)
//	refused                                              the controller refused to take somebody in
//	held 9                                               up to where do all members have the log start, if the leader has it at 9?
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
	said   int64 // words of replicas so far
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
		s.leader.open(nodes(a.plain[0]))
	case "stored":
		e = s.leader.Stored(a.number(0))
	case "fetch":
		e = s.leader.Fetched(s.origin(a), a.number(1))
	case "report":
		e = s.leader.Reported(s.origin(a), a.number(1), kafka.Offset(a.parse(a.get("start", "0"))))
	case "tick":
		at := time.Unix(1000, 0).Add(time.Duration(a.number(0)) * time.Millisecond)
		e = s.leader.Tick(at, a.number(1), 5*time.Second)
	case "heard":
		s.leader.HeardOf(kafka.NodeID(a.number(0)), time.Unix(1000, 0).Add(time.Duration(a.number(1))*time.Millisecond))
	case "change":
		s.change(a)
	case "refused":
		s.leader.Refused()
	case "held":
		fmt.Fprintf(&s.out, "  log start held: %d\n", s.leader.StartHeld(a.number(0)))
	default:
		return fmt.Errorf("unknown command %q", words[0])
	}
	s.print(e)
	return a.err
}

func (s *script) origin(a *args) Origin {
	s.said++
	return Origin{
		Node: kafka.NodeID(a.number(0)), Epoch: a.epoch(s.leader), Broker: kafka.BrokerEpoch(a.parse(a.get("broker", "1"))),
		Sequence: uint64(a.parse(a.get("seq", fmt.Sprint(s.said)))),
	}
}

func (s *script) change(a *args) {
	registered := map[kafka.NodeID]kafka.BrokerEpoch{}
	for f := range strings.SplitSeq(a.get("registered", "2:1,3:1"), ",") {
		if n, at, ok := strings.Cut(f, ":"); ok {
			registered[kafka.NodeID(a.parse(n))] = kafka.BrokerEpoch(a.parse(at))
		}
	}
	p, ok := s.leader.Propose(func(n kafka.NodeID) (kafka.BrokerEpoch, bool) {
		at, ok := registered[n]
		return at, ok
	})
	if !ok {
		fmt.Fprintln(&s.out, "  -> no change")
		return
	}
	fmt.Fprintf(&s.out, "  -> propose %v lost=%v in leader epoch %d, partition epoch %d (%d go, %d come)\n",
		p.ISR, p.Lost, p.LeaderEpoch, p.PartitionEpoch, p.Shrinks, p.Expands)
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
	if e.Change {
		fmt.Fprintln(&s.out, "  -> a change may be due")
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
		ELR:             nodes(a.get("elr", "")),
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
