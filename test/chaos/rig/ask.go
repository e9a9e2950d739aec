package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/test/chaos/raw"
)

const (
	// askEvery paces questions that are asked until the answer is right; askMax bounds one of them.
	askEvery = 50 * time.Millisecond
	askMax   = 5 * time.Second
)

var errNoneRuns = errors.New("no broker runs")

// Topic is a topic to be created.
type Topic struct {
	Name       string
	Partitions int32
	Replicas   int16
	Configs    map[string]string
}

// CreateTopic creates a topic by way of the first node and waits until every node shows all of it in sync.
func (c *Cluster) CreateTopic(ctx context.Context, t Topic) error {
	via := c.answering()
	if len(via) == 0 {
		return errNoneRuns
	}
	if err := Create(ctx, via[0].Kafka, t); err != nil {
		return err
	}
	return c.Whole(ctx, int(t.Replicas), t.Name)
}

// Create asks the node at an address to create a topic and waits for no more than its answer.
func Create(ctx context.Context, address string, topic Topic) error {
	req, name := kmsg.NewPtrCreateTopicsRequest(), topic.Name
	req.TimeoutMillis = 10_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, topic.Partitions, topic.Replicas
	for k, v := range topic.Configs {
		row := kmsg.NewCreateTopicsRequestTopicConfig()
		row.Name, row.Value = k, &v
		t.Configs = append(t.Configs, row)
	}
	req.Topics = append(req.Topics, t)
	r, err := raw.Ask(ctx, address, req)
	if err != nil {
		return fmt.Errorf("create %s: %w", name, err)
	}
	answer := r.(*kmsg.CreateTopicsResponse).Topics[0]
	if err := kerr.ErrorForCode(answer.ErrorCode); err != nil {
		why := ""
		if answer.ErrorMessage != nil {
			why = *answer.ErrorMessage
		}
		return fmt.Errorf("create %s: %w: %s", name, err, why)
	}
	return nil
}

// Whole waits until every partition of the topics has a leader and the given number of replicas in sync, as each running node tells it.
func (c *Cluster) Whole(ctx context.Context, replicas int, topics ...string) error {
	for _, t := range topics {
		if err := Until(ctx, t+" to be whole", func(ctx context.Context) error { return c.whole(ctx, t, replicas) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) whole(ctx context.Context, topic string, replicas int) error {
	var first []raw.Partition
	for _, n := range c.answering() {
		parts, _, err := raw.Topic(ctx, n.Kafka, topic)
		if err != nil {
			return fmt.Errorf("node %d: %w", n.ID, err)
		}
		for p, s := range parts {
			if s.Leader < 0 || len(s.ISR) < replicas {
				return fmt.Errorf("node %d: partition %d has leader %d and in-sync replicas %v", n.ID, p, s.Leader, s.ISR)
			}
			if first != nil && (p >= len(first) || first[p].Epoch != s.Epoch) {
				return fmt.Errorf("node %d: partition %d is not as the others see it", n.ID, p)
			}
		}
		first = parts
	}
	if first == nil {
		return errNoneRuns
	}
	return nil
}

// Shown is a topic as the first running node shows it.
func (c *Cluster) Shown(ctx context.Context, name string) ([]raw.Partition, error) {
	for _, n := range c.answering() {
		parts, _, err := raw.Topic(ctx, n.Kafka, name)
		return parts, err
	}
	return nil, errNoneRuns
}

// Controller waits until a running node is the active controller and all running nodes say so.
func (c *Cluster) Controller(ctx context.Context) (int32, error) {
	id := int32(-1)
	err := Until(ctx, "one active controller", func(ctx context.Context) error {
		var named []int32
		for _, n := range c.answering() {
			one, err := raw.QuorumLeader(ctx, n.Kafka)
			if err != nil {
				return fmt.Errorf("node %d: %w", n.ID, err)
			}
			named = append(named, one)
		}
		if len(named) == 0 || slices.Min(named) != slices.Max(named) || !c.Node(named[0]).Running() || c.Node(named[0]).paused {
			return fmt.Errorf("the running nodes name %v", named)
		}
		id = named[0]
		return nil
	})
	return id, err
}

// Balance makes preferred replicas lead and waits until they do.
func (c *Cluster) Balance(ctx context.Context, topic string) error {
	return Until(ctx, "preferred leaders of "+topic, func(ctx context.Context) error {
		via := c.answering()
		if len(via) == 0 {
			return errNoneRuns
		}
		if err := raw.ElectPreferred(ctx, via[0].Kafka); err != nil {
			return err
		}
		parts, err := c.Shown(ctx, topic)
		if err != nil {
			return err
		}
		for p, s := range parts {
			if s.Leader != s.Replicas[0] {
				return fmt.Errorf("partition %d is led by %d, want %d", p, s.Leader, s.Replicas[0])
			}
		}
		return nil
	})
}

// Until asks again and again until the answer is nil, and then returns nil; or the last answer when ctx ends.
func Until(ctx context.Context, what string, ask func(context.Context) error) error {
	for {
		one, cancel := context.WithTimeout(ctx, askMax)
		err := ask(one)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited for %s: %w (%w)", what, ctx.Err(), err)
		case <-time.After(askEvery):
		}
	}
}
