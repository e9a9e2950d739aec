package replica

import (
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
)

// TestPark_WideFetchRests: a record wakes a fetch over a few partitions at once, and one over very many after a pause that bounds what
// its looking around costs; the pause is over for one that was parked long ago.
func TestPark_WideFetchRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWorld(t)
		tp := w.topic("wide", wideFetch+1)
		items := make([]FetchItem, wideFetch+1)
		for i := range items {
			items[i] = at(kafka.TopicPartition{Topic: tp.Topic, Partition: int32(i)}, 0)
		}
		pause := time.Duration(len(items)) * widePause
		wide := w.host.Park(items, FetchOptions{}, 1)
		narrow := w.host.Park(items[:wideFetch], FetchOptions{}, 1)
		synctest.Wait()
		if isReady(wide.Ready()) || isReady(narrow.Ready()) {
			t.Fatal("woken by nothing")
		}
		w.acked(tp, batch(1))
		synctest.Wait()
		if !isReady(narrow.Ready()) {
			t.Error("a fetch over a few partitions was not woken at once")
		}
		if isReady(wide.Ready()) {
			t.Error("a fetch over very many partitions did not rest")
		}
		time.Sleep(pause)
		synctest.Wait()
		if !isReady(wide.Ready()) {
			t.Errorf("not woken after %v", pause)
		}
		wide.Cancel()
		narrow.Cancel()

		items[0].Offset = 1
		late := w.host.Park(items, FetchOptions{}, 1)
		time.Sleep(2 * pause)
		w.acked(tp, batch(1))
		synctest.Wait()
		if !isReady(late.Ready()) {
			t.Error("a fetch that was parked long ago rests again")
		}
		late.Cancel()
		w.stop(false)
	})
}
