package chaos

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// memberLines is how many lines a member's log keeps: at two heartbeats a second, with commits, half a minute of them.
	memberLines = 1000
	// handoverSilence is how long a survivor that keeps a partition may read nothing without its log being shown: the others read something 50 times a
	// second, and a session ends after 6 s.
	handoverSilence = 3 * time.Second
)

// memberLog keeps the newest lines of a member's client, without those of its fetches: what it asked its coordinator, what it was answered, and when.
type memberLog struct {
	mu    sync.Mutex
	lines []string
	next  int
}

// Level asks for all.
func (*memberLog) Level() kgo.LogLevel { return kgo.LogLevelDebug }

// Log keeps a line.
func (l *memberLog) Log(_ kgo.LogLevel, msg string, keyvals ...any) {
	if strings.Contains(msg, "Fetch v") || strings.Contains(msg, "Metadata v") {
		return
	}
	line := time.Now().Format("04:05.000 ") + msg
	for i := 0; i+1 < len(keyvals); i += 2 {
		line += fmt.Sprintf(" %v=%.200v", keyvals[i], fmt.Sprint(keyvals[i+1]))
	}
	l.add(line)
}

func (l *memberLog) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) < memberLines {
		l.lines = append(l.lines, line)
		return
	}
	l.lines[l.next%memberLines] = line
	l.next++
}

// text returns the lines in their order.
func (l *memberLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.next % memberLines
	return strings.Join(append(append([]string{}, l.lines[at:]...), l.lines[:at]...), "\n")
}

// explain shows the logs of the survivors of a round that was not as it should be: a partition with two owners, or a member that kept a partition
// and read nothing.
func (h *handover) explain(round int, survivors []*handoverMember, longest time.Duration) {
	h.book.Lock()
	isWrong := len(h.wrong) > h.explained
	h.explained = len(h.wrong)
	h.book.Unlock()
	if !isWrong && (len(h.more) == 0 || longest < handoverSilence) {
		return
	}
	h.show(round, survivors)
}

func (h *handover) show(round int, members []*handoverMember) {
	for _, m := range members {
		h.t.Logf("round %d: the log of %s\n%s", round, m.name, m.log.text())
	}
}
