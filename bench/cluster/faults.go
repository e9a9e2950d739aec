package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"strandline.dev/test/chaos/rig"
)

const (
	// faultLasts is how long a fault is on; calmAfter is added to its window after the cluster is whole, for what clients have to make up.
	faultLasts = 4 * time.Second
	calmAfter  = 5 * time.Second
)

// faults harms a random node in a random way, every so often, and marks the time from there until all is as before.
func (l *latency) faults(ctx context.Context, c *rig.Cluster) {
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(l.o.every):
		}
		if time.Since(l.begin) > l.o.duration-l.o.every/2 {
			return
		}
		n := c.Nodes[rand.IntN(len(c.Nodes))]
		other := c.Node(n.ID%3 + 1)
		kind := []string{"kill", "pause", "term", "cut"}[i%4]
		fmt.Printf("%v %s node %d\n", time.Since(l.begin).Round(time.Second), kind, n.ID)
		l.faulty.Store(true)
		var err error
		switch kind {
		case "kill":
			n.Kill()
			<-time.After(faultLasts)
			err = n.Start()
		case "pause":
			n.Pause()
			<-time.After(faultLasts)
			n.Resume()
		case "term":
			if err = n.Stop(); err == nil {
				err = n.Start()
			}
		case "cut":
			c.Cut(n.ID, other.ID)
			<-time.After(2 * faultLasts)
			c.Heal()
		}
		if err == nil {
			err = n.Ready(ctx)
		}
		if err == nil {
			err = c.Whole(ctx, 3, topic)
		}
		if err != nil && ctx.Err() == nil {
			l.bad("after %s of node %d: %v", kind, n.ID, err)
			return
		}
		<-time.After(calmAfter)
		l.faulty.Store(false)
	}
}
