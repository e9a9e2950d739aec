package controller

import (
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// errEarly turns an event away whose refusal may mean only that brokers are on their way back.
var errEarly = fmt.Errorf("%w for long enough: fewer brokers than are needed have registered with it", ErrNotController)

// early says that a refusal for want of brokers comes from a reign that is younger than a session: after a time without a controller the brokers
// are still registering. Told "invalid", a client would give up on what is right a moment later; told "not now", it, or the node it asked, repeats.
func (c *Controller) early(now time.Time, reply any) bool {
	if c.peers == nil || now.Sub(c.reign.began) >= c.sessionTimeout {
		return false
	}
	short := func(o metadata.Outcome) bool {
		return o.Code == kafka.InvalidReplicationFactor || o.Code == kafka.InvalidReplicaAssignment
	}
	switch results := reply.(type) {
	case []metadata.TopicResult:
		for i := range results {
			if short(results[i].Outcome) {
				return true
			}
		}
	case []metadata.PartitionsResult:
		for i := range results {
			if short(results[i].Outcome) {
				return true
			}
		}
	}
	return false
}
