package storage

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys/systest"
)

// TestSyncer_BigRoundsCollect: after a round with many bytes the next lets appends collect for roundPause, all into one round; after a small one it
// starts at once.
func TestSyncer_BigRoundsCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := systest.NewFS(1)
		d := newFewFilesDir(t, fsys)
		defer stopDir(t, d)
		var mu sync.Mutex
		var stored kafka.Offset
		var at time.Time
		tells := 0
		l := openTestLog(t, d, LogOptions{Policy: Synced, OnStored: func(end kafka.Offset, err error) {
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			stored, at, tells = end, time.Now(), tells+1
		}})
		want := func(what string, since time.Time, end kafka.Offset, after time.Duration, rounds int) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if stored != end || at.Sub(since) != after || tells != rounds {
				t.Errorf("%s: stored up to %d after %v in round %d, want %d, %v, %d", what, stored, at.Sub(since), tells, end, after, rounds)
			}
		}
		add := func(count, size int) time.Time {
			mustAppend(t, l, 0, testBatch(1, count, size, 0))
			return time.Now()
		}
		for end := kafka.Offset(1); end <= 3; end++ {
			began := add(1, 100)
			synctest.Wait()
			want("a small round", began, end, 0, int(end))
		}
		began := add(11, 100_000)
		synctest.Wait()
		want("a big round", began, 14, 0, 4)
		first := add(1, 100)
		synctest.Wait()
		time.Sleep(roundPause / 2)
		add(1, 100)
		synctest.Wait()
		want("while appends collect", began, 14, 0, 4)
		time.Sleep(roundPause)
		synctest.Wait()
		want("after the pause", first, 16, roundPause, 5)
		began = add(1, 100)
		synctest.Wait()
		want("a small one again", began, 17, 0, 6)
	})
}
