package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// startBroker is chapter 1.
func (st *story) startBroker(ctx context.Context) error {
	began := time.Now()
	if err := st.broker.start(ctx, "127.0.0.1:0"); err != nil {
		return err
	}
	st.link.point(st.broker.address)
	st.say("1. broker started in %v: process %d, kafka=%s, data in a throw-away directory",
		time.Since(began).Round(time.Millisecond), st.broker.pid(), st.broker.address)
	return nil
}

// createTopic is chapter 2. The flush policy is asked for by name and then read back, so that the output states what holds.
func (st *story) createTopic(ctx context.Context) error {
	client, err := kgo.NewClient(st.link.options("demo-admin")...)
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	synced := "synced"
	if _, err := admin.CreateTopic(ctx, demoPartitions, 1, map[string]*string{"strandline.flush": &synced}, demoTopic); err != nil {
		return fmt.Errorf("create %s: %s", demoTopic, reason(err))
	}
	resources, err := admin.DescribeTopicConfigs(ctx, demoTopic)
	if err != nil {
		return fmt.Errorf("describe %s: %s", demoTopic, reason(err))
	}
	r, err := resources.On(demoTopic, nil)
	if err == nil {
		err = r.Err
	}
	if err != nil {
		return fmt.Errorf("describe %s: %s", demoTopic, reason(err))
	}
	flush, ok := findConfig(r.Configs, "strandline.flush")
	if !ok || flush.MaybeValue() != synced {
		return fmt.Errorf("the broker does not say strandline.flush=synced for %s", demoTopic)
	}
	st.flush = flush.MaybeValue()
	st.say("2. topic %s: %d partitions, 1 replica, strandline.flush=%s: acknowledged means on disk", demoTopic, demoPartitions, st.flush)
	return nil
}

// startServices is chapter 3.
func (st *story) startServices(ctx context.Context) error {
	if err := st.orders.start(ctx); err != nil {
		return err
	}
	if err := errors.Join(st.fulfillment.start(ctx), st.analytics.start(ctx)); err != nil {
		return err
	}
	st.say("3. the order service publishes %d events by order id, acks=all, idempotent, about %d a second;", st.records, demoPace)
	st.say("   the consumer groups fulfillment and analytics read at their own pace, each with its own committed offsets")
	return nil
}

// loseResponse is chapter 4: the broker has stored a batch and answered, but the answer never arrives.
func (st *story) loseResponse(ctx context.Context) error {
	if err := st.until(ctx, 0.2); err != nil {
		return err
	}
	lost := st.link.loseNextProduceResponse()
	select {
	case <-lost:
	case <-ctx.Done():
		return fmt.Errorf("no response was lost: %w", ctx.Err())
	}
	st.say("4. a response got lost: stored and answered by the broker, cut off on the way; the client repeats the same producer sequence")
	return nil
}

// crashWorker is chapter 5: the worker has applied a batch and dies before it commits.
func (st *story) crashWorker(ctx context.Context) error {
	if err := st.until(ctx, 0.4); err != nil {
		return err
	}
	unsaved, err := st.fulfillment.crash(ctx)
	if err != nil {
		return err
	}
	if err := st.fulfillment.start(ctx); err != nil {
		return err
	}
	st.redelivered = unsaved
	st.say("5. the fulfillment worker crashed with %d events applied and not yet committed; a new one resumes at the committed offsets,", unsaved)
	st.say("   gets these again, and knows them by their record-id")
	return nil
}

// killBroker is chapter 6.
func (st *story) killBroker(ctx context.Context) error {
	if err := st.until(ctx, 0.6); err != nil {
		return err
	}
	began := time.Now()
	acked, pid := st.orders.acked.Load(), st.broker.pid()
	st.broker.kill()
	inFlight := st.orders.published.Load() - st.orders.acked.Load()
	st.say("6. kill -9 of broker process %d in the middle of the stream: %d events acknowledged, %d on their way", pid, acked, inFlight)
	if err := st.broker.start(ctx, st.broker.address); err != nil {
		// Something took the port in between: any other will do, the link knows where the broker is.
		if err := st.broker.start(ctx, "127.0.0.1:0"); err != nil {
			return err
		}
	}
	st.link.point(st.broker.address)
	if err := st.waitFor(ctx, func() bool { return st.orders.acked.Load() > acked }); err != nil {
		return err
	}
	st.say("   started again as process %d on the same data, without help; the client repeats what was unanswered,", st.broker.pid())
	st.say("   and acknowledgements go on %v after the kill", time.Since(began).Round(time.Millisecond))
	return nil
}

// finish is chapter 7: everything is acknowledged and both readers have caught up.
func (st *story) finish(ctx context.Context) error {
	if err := st.orders.wait(ctx); err != nil {
		return err
	}
	st.say("7. all %d events acknowledged; fulfillment is %d behind, analytics %d",
		st.orders.acked.Load(), st.behind(st.fulfillment), st.behind(st.analytics))
	for _, r := range []*reader{st.fulfillment, st.analytics} {
		if err := r.reach(ctx, st.orders.ends()); err != nil {
			return fmt.Errorf("%s never reached the end: %w", r.name, err)
		}
		lag, err := r.lag(ctx, st.orders.ends())
		if err != nil {
			return err
		}
		if lag != 0 {
			return fmt.Errorf("%s has committed everything, and the broker tells a lag of %d", r.name, lag)
		}
	}
	st.say("   both have caught up: the broker tells a lag of 0 for both groups")
	return nil
}

func (st *story) behind(r *reader) int64 {
	return max(0, st.orders.acked.Load()-r.distinct())
}

// replay is chapter 8: the partition of order-42 once more from its first record, compared with what fulfillment got.
func (st *story) replay(ctx context.Context) error {
	partition := st.orders.partitionOf("order-42")
	events, err := st.audit.readPartition(ctx, partition, st.orders.ends()[partition])
	if err != nil {
		return fmt.Errorf("replay of partition %d: %w", partition, err)
	}
	st.replayed = len(events)
	st.replayWrong = st.fulfillment.compare(partition, events)
	st.say("8. replayed partition %d, the one of order-42, from offset 0: %d events, %d differ from what fulfillment got",
		partition, st.replayed, st.replayWrong)
	return nil
}

// auditLog is the last chapter: all partitions from offset 0, for the table.
func (st *story) auditLog(ctx context.Context) error {
	if err := st.audit.readAll(ctx, st.orders.ends()); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	st.say("9. read all %d partitions from offset 0 and compared every event with what was acknowledged", demoPartitions)
	return nil
}
