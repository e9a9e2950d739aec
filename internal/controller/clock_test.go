package controller

import (
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/metadata"
)

// The wall clock steps forward by 400 days: nothing leaves the trash for it, and expiry goes on when the clock is back.
func TestI9_ClockStepPurgesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestController(t)
		defer c.stop()
		c.quorum.lead()
		c.register(1)
		c.must(create("orders", 1))
		c.must(metadata.DeleteTopics{Topics: []metadata.DeleteTopic{{Name: "orders"}}})
		kept := func() (n int) {
			for range c.quorum.Image().Trash() {
				n++
			}
			return n
		}
		if kept() != 1 {
			t.Fatalf("%d topics in the trash", kept())
		}
		const step = 400 * 24 * time.Hour
		c.wall.Step(step)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if kept() != 1 {
			t.Fatal("purged 10 s after the deletion because the wall clock stepped")
		}
		c.wall.Step(-step)
		time.Sleep(25 * time.Hour) // the recovery window is a day
		synctest.Wait()
		if kept() != 0 {
			t.Fatal("the recovery window has passed by a clock that can be trusted, and the topic is still there")
		}
	})
}
