package storage

import (
	"testing"
	"time"
)

// TestR183_LossIn: when retention passes a record, by age and by size, never before the minimum age (I9).
func TestR183_LossIn(t *testing.T) {
	const hour = time.Hour
	for _, c := range []struct {
		name   string
		p      RetentionPolicy
		age    time.Duration // of the youngest record of the segment
		behind int64
		rate   float64
		want   time.Duration
		never  bool
	}{
		{name: "no limit", age: hour, never: true},
		{name: "by age", p: RetentionPolicy{Age: 10 * hour}, age: 4 * hour, want: 6 * hour},
		{name: "age is over", p: RetentionPolicy{Age: hour}, age: 4 * hour, want: 0},
		{name: "by size", p: RetentionPolicy{Bytes: 10_000}, behind: 4_000, rate: 10, want: 10 * time.Minute},
		{name: "by size, nothing comes in", p: RetentionPolicy{Bytes: 10_000}, behind: 4_000, never: true},
		{name: "by size, over", p: RetentionPolicy{Bytes: 10_000}, behind: 10_000, want: 0},
		{name: "by size, in a thousand years", p: RetentionPolicy{Bytes: 1 << 60}, rate: 1, never: true},
		{name: "the earlier of both", p: RetentionPolicy{Age: 10 * hour, Bytes: 7_200}, age: hour, rate: 1, want: 2 * hour},
		{name: "the promise comes first", p: RetentionPolicy{Age: 10 * hour, Bytes: 1, MinimumAge: 3 * hour}, age: hour, behind: 5, want: 2 * hour},
		{name: "the promise is kept", p: RetentionPolicy{Age: 10 * hour, Bytes: 1, MinimumAge: 3 * hour}, age: 4 * hour, behind: 5, want: 0},
	} {
		now := int64(1_700_000_000_000)
		in, ok := c.p.lossIn(now, now-c.age.Milliseconds(), c.behind, c.rate)
		if ok == c.never || in != c.want {
			t.Errorf("%s: %v %v, want %v, never %v", c.name, in, ok, c.want, c.never)
		}
	}
	if _, ok := (RetentionPolicy{Age: hour}).lossIn(0, maxMs, 0, 0); ok {
		t.Error("what is unknown is said to be lost")
	}
}
