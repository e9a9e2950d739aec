package group

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var rewrite = flag.Bool("rewrite", false, "write the present output into testdata")

// TestScripts runs testdata/*.txt. A script is commands, one a line; the lines after a command that begin with "  " are its full
// trace: records, replies, notes, and when the next timer is due. Lines that begin with # are comments. A reply is named by the
// number of the request that it answers; a member by the name that its join gave it with as=, else by the text before the random part
// of its id and that number: "c.1" is "c-00000000-0000-0000-0000-000000000001". After every step the log is replayed, also compacted, and must give the same hard
// state (P33).
//
//	config delay=3s max=2 ...       a new, empty shard
//	join  [as=a] [g=G] [m=a] [i=inst] [c=client] [type=consumer] [p=range:t1+t2,sticky:t1] [own=t/0,t/1 [ogen=2]] [s=10s] [r=60s] [v=9] [why=text]
//	sync  [g=G] m=a gen=1 [i=inst] [give=a:A,b:B | give=a:t/0+t/1,b:t/2] [type=consumer name=range]
//	beat  [g=G] m=a gen=1 [i=inst]
//	leave [g=G] [a ...] [i:inst ...] [a@inst ...] [why=text]
//	commit [g=G] [m=a] [gen=1] [i=inst] [v=9] t/0=42 t/1=7:3:text
//	fetch [g=G] t/0 t/1             or: fetch all
//	describe G...    list [states=a,b] [types=a,b]    delete G...    forget [g=G] t/0 t/1
//	seek [g=G] t/0=5 t/1=7          or: seek undo
//	widen t=4                       topic t has 4 partitions from now on; width t=4: the same, and no coordinator is told
//	cancel 3                        the peer of request 3 is gone
//	hb [g=G] m=a e=0 [t=t,u] [re=pattern] [r=60s] [own=t/0,t/1 | own=-] [i=inst] [rack=r] [as=range] [v=1]   ConsumerGroupHeartbeat; e=0 says t=t,u own=- r=60s
//	look G...                       ConsumerGroupDescribe
//	topic t=2                       topic t exists with id 2; =0: it does not
//	parts t=6                       it has 6 partitions; 4 without this
//	purge 2                         topics with these ids are purged
//	+10s                            time passes; timers act at their time
//	wall 360h                       the wall clock steps
//	kept t=720h                     how long a topic keeps its records
//	restart [cut=1] [max=1] [compact]   the shard is rebuilt from its log, without the last records
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
			got := runScript(t, string(want))
			switch {
			case got == string(want):
			case *rewrite:
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			default:
				t.Errorf("%s: the trace differs; run with -rewrite and read the difference\n%s", file, firstDifference(string(want), got))
			}
		})
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, w[i], g[i])
		}
	}
	return fmt.Sprintf("want %d lines, got %d", len(w), len(g))
}

func runScript(t *testing.T, text string) string {
	s := newScript(t)
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
		if err := s.run(line); err != nil {
			t.Fatalf("line %d: %q: %v", n, line, err)
		}
	}
	return s.out.String()
}

// script is a shard with its log, and what the commands have set.
type script struct {
	*world
	out     strings.Builder
	token   uint64
	topics  map[string]byte
	parts   map[string]int32
	version uint64            // of the catalog
	ids     map[string]string // what as= names
	names   map[string]string // the same the other way, from "c.1"
}

func newScript(t *testing.T) *script {
	s := &script{world: newWorld(t, Config{InitialDelay: 3 * time.Second}), topics: map[string]byte{"t": 1, "u": 2}, parts: map[string]int32{}, ids: map[string]string{}, names: map[string]string{}}
	s.world.seen = s.print
	return s
}

// run performs one command.
func (s *script) run(line string) error {
	c := parseCommand(line)
	switch c.verb {
	case "config":
		s.world = newWorld(s.t, Config{
			InitialDelay: c.duration("delay", 3*time.Second), MaxSize: int(c.number("max", 0)), SessionMin: c.duration("min", 0),
			RecordBytesMax: int(c.number("record", 0)), ProtocolBytesMax: int(c.number("protocols", 0)),
			ConsumerMaxSize: int(c.number("max", 0)), Assignors: c.list("assignors"), Migration: Migration(c.text("policy", "")),
		})
		s.world.seen = s.print
		return c.err
	case "topic":
		for name := range c.named {
			s.topics[name] = byte(c.number(name, 0))
		}
		s.version++
		return c.err
	case "parts":
		for name := range c.named {
			s.parts[name] = int32(c.number(name, 0))
		}
		s.version++
		return c.err
	case "width":
		for name := range c.named {
			s.widths[testID(s.topics[name])] = int32(c.number(name, 0))
		}
		return c.err
	case "kept":
		for name := range c.named {
			s.kept[testID(s.topics[name])] = c.duration(name, 0)
		}
		return c.err
	case "wall":
		s.stepWall(c.durationOf(c.plain[0]))
		return c.err
	case "restart":
		s.cfg.MaxSize = int(c.number("max", int64(s.cfg.MaxSize)))
		s.restart(int(c.number("cut", 0)), c.has("compact"))
		s.next()
		return c.err
	}
	if d, ok := strings.CutPrefix(c.verb, "+"); ok {
		s.advance(c.durationOf(d))
		s.next()
		return c.err
	}
	s.token++
	ev := s.event(c)
	if ev == nil {
		return fmt.Errorf("unknown command")
	}
	s.do(ev)
	s.next()
	return c.err
}

// next shows when the first timer is due.
func (s *script) next() {
	if at, ok := s.shard.NextDeadline(); ok {
		fmt.Fprintf(&s.out, "  next timer in %v\n", at.Sub(s.now.Mono))
	}
}

// print shows effects.
func (s *script) print(passed time.Duration, e Effects) {
	s.out.WriteString(namedID.ReplaceAllStringFunc(show(passed, e), func(id string) string {
		if name, ok := s.names[id]; ok {
			return name
		}
		return id
	}))
}

func show(passed time.Duration, e Effects) string {
	var out strings.Builder
	at := ""
	if passed > 0 {
		at = fmt.Sprintf("at +%v: ", passed)
	}
	for _, kv := range e.Records {
		fmt.Fprintf(&out, "  %srecord %s\n", at, showRecord(kv))
	}
	for _, r := range e.Replies {
		when := ""
		if r.AfterCommit {
			when = " after commit"
		}
		fmt.Fprintf(&out, "  %s#%d%s: %s\n", at, r.Token, when, showReply(r.Response))
	}
	for _, n := range e.Notes {
		fmt.Fprintf(&out, "  %s%s\n", at, showNote(n))
	}
	return out.String()
}
