package coordinator

import (
	"context"
	"fmt"
	"sync"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// creation is the attempt to create the topic. However many clients ask, one runs at a time.
type creation struct {
	mu      sync.Mutex
	running chan struct{} // closed when the attempt in progress ends; nil when none is
	next    time.Time     // no attempt before
}

// Create makes the topic and waits until the shards of this node have loaded, as far as ctx allows. Error: ErrNotAvailable, also when
// another attempt has just failed; the reason is in the log.
func (c *Coordinator) Create(ctx context.Context) error {
	for !c.Exists() {
		mine, others, err := c.creation.begin(time.Now())
		switch {
		case err != nil:
			return err
		case others != nil:
			select {
			case <-others:
			case <-ctx.Done():
				return ErrNotAvailable
			}
			continue
		}
		err = c.create(ctx)
		c.creation.finish(mine)
		if err != nil {
			c.cfg.Log.Warn("the topic of the group coordinators cannot be created yet", "topic", TopicName, "error", err)
			return ErrNotAvailable
		}
		break
	}
	c.Update(c.cfg.Image())
	for _, s := range c.all() {
		select {
		case <-s.loaded:
		case <-ctx.Done():
			return nil // it exists; who asks too early is told ErrLoading
		}
	}
	return nil
}

// begin starts an attempt, or returns the channel of the one in progress.
func (k *creation) begin(now time.Time) (mine, others chan struct{}, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.running != nil:
		return nil, k.running, nil
	case now.Before(k.next):
		return nil, nil, ErrNotAvailable
	}
	k.running, k.next = make(chan struct{}), now.Add(createEvery)
	return k.running, nil, nil
}

func (k *creation) finish(mine chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running = nil
	close(mine)
}

// create asks the controller for the topic and waits until this node serves it.
func (c *Coordinator) create(ctx context.Context) error {
	b := c.cfg.Broker()
	replicas, up := c.cfg.Image().InternalReplicas(min(replicasMax, int(b.OffsetsTopicReplication)))
	if up < replicas {
		return fmt.Errorf("%d brokers are to hold it, and %d are up", replicas, up)
	}
	ctx, cancel := context.WithTimeout(ctx, createMax)
	defer cancel()
	reply, version, err := c.cfg.Controller.Submit(ctx, metadata.CreateTopics{
		Principal: kafka.Principal{Type: "Node", Name: c.cfg.Node.String()},
		Topics: []metadata.NewTopic{{
			Name: TopicName, Partitions: b.OffsetsTopicPartitions, ReplicationFactor: int16(replicas), Internal: true, Configs: topicConfigs(),
		}},
	})
	if err != nil {
		return err
	}
	if err := metadata.Created(reply); err != nil {
		return err
	}
	if err := c.cfg.Replicas.WaitApplied(ctx, version); err != nil {
		return err
	}
	if !c.Exists() {
		return fmt.Errorf("version %d of the metadata does not show it", version)
	}
	return nil
}

// topicConfigs are what Kafka sets on this topic: only compaction removes anything, the newest record of each key stays.
func topicConfigs() map[string]*string {
	value := func(s string) *string { return &s }
	return map[string]*string{
		"cleanup.policy": value("compact"), "compression.type": value("producer"), "segment.bytes": value("104857600"),
	}
}
