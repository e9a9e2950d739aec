package client

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestFrontier_NeverPastWhatIsNotDone: whatever the holes between offsets and the order in which records are done, the position is just after
// the longest run of done ones.
func TestFrontier_NeverPastWhatIsNotDone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f frontier
		var offsets []int64
		next := rapid.Int64Range(0, 1000).Draw(t, "start")
		for range rapid.IntRange(1, 20).Draw(t, "records") {
			next += rapid.Int64Range(1, 5).Draw(t, "gap")
			offsets = append(offsets, next)
			f.deliver(next, int32(next%7))
		}
		done := map[int64]bool{}
		for _, o := range rapid.Permutation(offsets).Draw(t, "order") {
			f.finish(o)
			done[o] = true
			f.finish(o + 1_000_000) // never delivered
			want, any := int64(0), false
			for _, o := range offsets {
				if !done[o] {
					break
				}
				want, any = o+1, true
			}
			if at, ok := f.position(); ok != any || ok && (at.Offset != want || at.Epoch != int32((want-1)%7)) {
				t.Fatalf("done %v of %v: position %v, %v; want %d, %v", done, offsets, at, ok, want, any)
			}
		}
		if len(f.open) != 0 {
			t.Fatalf("%v left", f.open)
		}
	})
}

func TestBackoff_DoublesWithinItsBounds(t *testing.T) {
	for attempt, want := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 4: 800 * time.Millisecond, 5: time.Second, 1000: time.Second} {
		for range 100 {
			if got := backoff(100*time.Millisecond, time.Second, attempt); got < want/2 || got > want {
				t.Errorf("attempt %d: %v", attempt, got)
			}
		}
	}
}
