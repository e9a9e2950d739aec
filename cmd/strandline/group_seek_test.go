package main

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/group"
)

// TestR50_SeekTargets: where each target is in a partition that holds [10, 20); what is outside is clamped, and said.
func TestR50_SeekTargets(t *testing.T) {
	const start, end = 10, 20
	none := int64(-1)
	for _, c := range []struct {
		to            string
		committed, at int64
		want          int64
		noted         bool
	}{
		{"start", none, 0, 10, false}, {"end", none, 0, 20, false}, {"start", 15, 0, 10, false},
		{"12", none, 0, 12, false}, {"10", none, 0, 10, false}, {"20", none, 0, 20, false}, {"9", none, 0, 10, true}, {"21", none, 0, 20, true},
		{"+0", 15, 0, 15, false}, {"+5", 15, 0, 20, false}, {"+6", 15, 0, 20, true}, {"-5", 15, 0, 10, false}, {"-6", 15, 0, 10, true},
		{"+9223372036854775807", 15, 0, 20, true}, {"-9223372036854775807", 15, 0, 10, true},
		{"+2", 3, 0, 10, true}, {"+9", 3, 0, 12, false}, {"-1", 25, 0, 20, true},
		{"+1", none, 0, none, true}, {"-1", none, 0, none, true},
		{"@2026-01-01", none, 14, 14, false}, {"@2026-01-01", 15, 20, 20, true},
	} {
		f := seekFlags{to: c.to}
		target, err := f.target(time.Now())
		if err != nil {
			t.Fatal(err)
		}
		var committed *int64
		if c.committed != none {
			committed = &c.committed
		}
		to, note := target.In(start, end, committed, c.at)
		got := none
		if to != nil {
			got = *to
		}
		if got != c.want || (note != "") != c.noted {
			t.Errorf("%s from %d: %d %q, want %d", c.to, c.committed, got, note, c.want)
		}
	}
}

// TestR50_SeekSkips: only records that are kept are skipped or read again.
func TestR50_SeekSkips(t *testing.T) {
	for _, c := range []struct{ from, to, want int64 }{{12, 15, 3}, {15, 12, -3}, {3, 10, 0}, {3, 12, 2}, {25, 18, -2}, {0, math.MaxInt64, 10}} {
		if got := group.Skips(10, 20, &c.from, &c.to); *got != c.want {
			t.Errorf("%d to %d: %d, want %d", c.from, c.to, *got, c.want)
		}
	}
	if group.Skips(10, 20, nil, new(int64)) != nil || group.Skips(10, 20, new(int64), nil) != nil {
		t.Error("records are counted from no place")
	}
}

// TestR50_SeekWithoutAnOutcome: an answer of a broker that took the seek for a commit, or none that can be read, is no success.
func TestR50_SeekWithoutAnOutcome(t *testing.T) {
	resp := kmsg.NewPtrOffsetCommitResponse()
	if _, err := seekOutcome(resp); err == nil {
		t.Error("an answer without the tag is a success")
	}
	resp.UnknownTags.Set(seekTag, []byte{0x27, 0x13, 0, 0, 0})
	if _, err := seekOutcome(resp); err == nil {
		t.Error("an answer that is cut off is a success")
	}
	for code, unknown := range map[error]bool{
		kerr.NonEmptyGroup: false, kerr.GroupAuthorizationFailed: false, kerr.NotCoordinator: true, kerr.RequestTimedOut: true, kerr.UnknownServerError: true,
	} {
		err := (&seeking{group: "g"}).refused(code)
		if !errors.Is(err, code) || strings.Contains(err.Error(), "is not known") != unknown {
			t.Errorf("%v: %v", code, err)
		}
	}
}
