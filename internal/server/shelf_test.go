package server

import (
	"testing"
	"testing/synctest"
	"time"
)

// held is how many bytes lie on the shelf.
func (s *shelf) held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.bytes
}

// What is used again and again stays, what nobody took for two sweeps goes, and then nothing ticks any more.
func TestShelf_LetsGoOfWhatIsUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{limit: 1 << 20}
		used, spare := s.take(100_000), s.take(100_000)
		small := s.take(1)
		putFrame(small)
		putFrame(spare)
		putFrame(used)
		for range 12 {
			if f := s.take(100_000); f != used {
				t.Fatal("not the buffer that came back last")
			} else {
				putFrame(f)
			}
			time.Sleep(shelfIdle / 4)
		}
		if got, want := s.held(), cap(used.b); got != want {
			t.Errorf("%d bytes kept in use, want %d", got, want)
		}
		time.Sleep(2 * shelfIdle)
		if got := s.held(); got != 0 {
			t.Errorf("%d bytes kept by an idle server, want none", got)
		}
		putFrame(used)
		if s.take(100_000) != used {
			t.Error("not kept after it had been empty")
		}
	})
}

// A sync round of a busy disk: all publishers wait, and then all send again.
func TestShelf_KeepsThroughASyncRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const round = 400 * time.Millisecond
		s := &shelf{limit: 1 << 20}
		first, second := s.take(100_000), s.take(100_000)
		for range 10 {
			putFrame(first)
			putFrame(second)
			time.Sleep(round)
			if s.take(100_000) != second || s.take(100_000) != first {
				t.Fatal("a buffer was let go while its users waited for the disk")
			}
			time.Sleep(round)
		}
	})
}

func TestShelf_IsBounded(t *testing.T) {
	const limit = 2 * frameMax
	s := &shelf{limit: limit}
	var out []*frame
	for range 2 * limit / frameMax {
		out = append(out, s.take(frameMax))
	}
	for _, f := range out {
		putFrame(f)
	}
	putFrame(s.take(frameMax + 1))
	if got := s.held(); got != limit {
		t.Errorf("%d bytes kept, want %d", got, limit)
	}
}

// overduePending has no answer and is late.
type overduePending struct{ cancelled *bool }

func (overduePending) Ready() <-chan struct{}      { return alreadyReady }
func (overduePending) Deadline() time.Time         { return time.Unix(1, 0) }
func (overduePending) Complete(bool) (Reply, bool) { return Reply{}, true }
func (p overduePending) Cancel()                   { *p.cancelled = true }

// What is still worked on, a login or an event in a coordinator's inbox, must not come to read the bytes of somebody else's request: the buffer of an
// exchange that was dropped, or answered late, is used for no other.
func TestExchange_BytesThatAreWorkedOnAreNotUsedAgain(t *testing.T) {
	s, cancelled := &shelf{limit: 1 << 20}, false
	newExchange := func() *exchange {
		return &exchange{frame: s.take(100_000), reply: Reply{Pending: overduePending{&cancelled}}}
	}
	newExchange().drop()
	if s.held() > 0 || !cancelled {
		t.Errorf("dropped: %d bytes for others, cancelled %v", s.held(), cancelled)
	}
	late := newExchange()
	if ok := new(writer).settle(late); !ok || late.reply.Pending != nil {
		t.Fatal("not settled at its deadline")
	}
	late.finish()
	if s.held() > 0 {
		t.Errorf("answered late: %d bytes for others", s.held())
	}
	done := newExchange()
	done.reply = Reply{}
	done.finish()
	if s.held() == 0 {
		t.Error("answered: the buffer is not used again")
	}
}
