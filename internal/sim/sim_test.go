package sim

import (
	"flag"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	seedsFlag  = flag.Int("sim.seeds", 300, "how many seeds TestSim runs")
	startFlag  = flag.Uint64("sim.start", 1, "the first seed")
	eventsFlag = flag.Int("sim.events", 3000, "events under faults a seed")
)

// TestSim runs seeds and prints how often rare states were reached.
func TestSim(t *testing.T) {
	var next atomic.Uint64
	next.Store(*startFlag)
	end := *startFlag + uint64(*seedsFlag)
	var mu sync.Mutex
	rare, acked, events := map[string]int{}, 0, 0
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for seed := next.Add(1) - 1; seed < end && !t.Failed(); seed = next.Add(1) - 1 {
				out := Run(seed, *eventsFlag)
				mu.Lock()
				for name, n := range out.Rare {
					rare[name] += n
				}
				acked += out.Acked
				events += out.Events
				mu.Unlock()
				if out.Failure != "" {
					t.Errorf("%s", out.Failure)
				}
			}
		})
	}
	running.Wait()
	t.Logf("%d seeds from %d, %d events, %d acknowledged records", *seedsFlag, *startFlag, events, acked)
	for _, name := range slices.Sorted(maps.Keys(rare)) {
		t.Logf("%8d %s", rare[name], name)
	}
}
