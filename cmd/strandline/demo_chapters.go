package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// startCluster is chapter 1.
func (st *story) startCluster(ctx context.Context) error {
	began := time.Now()
	if err := st.cluster.start(ctx); err != nil {
		return fmt.Errorf("the cluster did not come up: %w", err)
	}
	st.link.seeds = st.cluster.addresses()
	if err := st.connectAdmin(); err != nil {
		return err
	}
	st.say("1. a cluster of %d brokers formed in %v, data in a throw-away directory:", demoBrokers, time.Since(began).Round(time.Millisecond))
	for _, b := range st.cluster.brokers {
		st.say("   broker %d in %s: process %d, kafka=%s", b.id, b.rack(), b.pid(), b.kafka)
	}
	return nil
}

// connectAdmin gives the chapters a client without connections. After a kill they need a new one: the client finds out that an idle connection
// was cut only when it uses it, and where that happens while it looks for a group's coordinator it does not try again.
func (st *story) connectAdmin() error {
	client, err := kgo.NewClient(st.link.options("demo-admin")...)
	if err != nil {
		return err
	}
	if st.admin != nil {
		st.admin.Close()
	}
	st.admin = client
	return nil
}

// createTopic is chapter 2. The settings are asked for by name and then read back, so that the output states what holds.
func (st *story) createTopic(ctx context.Context) error {
	admin := kadm.NewClient(st.admin)
	synced, minISR, window := "synced", strconv.Itoa(demoMinISR), dedupWindowDefault
	wanted := map[string]*string{"strandline.flush": &synced, "min.insync.replicas": &minISR, dedupWindowConfig: &window}
	if _, err := admin.CreateTopic(ctx, demoPartitions, demoReplicas, wanted, demoTopic); err != nil {
		return fmt.Errorf("create %s: %s", demoTopic, reason(err))
	}
	r, err := describeCreated(ctx, admin)
	if err != nil {
		return fmt.Errorf("describe %s: %s", demoTopic, reason(err))
	}
	for name, value := range wanted {
		if got, ok := findConfig(r.Configs, name); !ok || got.MaybeValue() != *value {
			return fmt.Errorf("the brokers do not say %s=%s for %s", name, *value, demoTopic)
		}
	}
	if err := st.waitInSync(ctx, 0); err != nil {
		return fmt.Errorf("not every partition of %s has a leader and %d replicas in sync: %w", demoTopic, demoReplicas, err)
	}
	st.say("2. topic %s: %d partitions, %d replicas in %d racks, min ISR %d, strandline.flush=%s:",
		demoTopic, demoPartitions, demoReplicas, demoBrokers, demoMinISR, synced)
	st.say("   acknowledged means on the disks of all replicas in sync, of at least %d; record ids are remembered for %s ms", demoMinISR, window)
	return nil
}

// describeCreated asks for the settings of the topic until the broker that is asked has heard of it: another one than the one that created it may have
// its news a moment later.
func describeCreated(ctx context.Context, admin *kadm.Client) (kadm.ResourceConfig, error) {
	for {
		resources, err := admin.DescribeTopicConfigs(ctx, demoTopic)
		if err != nil {
			return kadm.ResourceConfig{}, err
		}
		r, err := resources.On(demoTopic, nil)
		if err = cmp.Or(err, r.Err); !errors.Is(err, kerr.UnknownTopicOrPartition) {
			return r, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return r, fmt.Errorf("%w: %w", err, ctx.Err())
		}
	}
}

// waitInSync waits until every partition has a leader and all replicas in sync, in the eyes of a broker other than one.
func (st *story) waitInSync(ctx context.Context, not int32) error {
	for {
		partitions, err := demoPartitionsOf(ctx, st.admin, st.cluster.survivor(not).id)
		if err != nil {
			return err
		}
		if st.caughtUp = inSync(partitions); st.caughtUp == demoPartitions {
			return nil
		}
		if err := st.servicesErr(); err != nil {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d of %d have: %w", st.caughtUp, demoPartitions, ctx.Err())
		}
	}
}

// startServices is chapter 3.
func (st *story) startServices(ctx context.Context) error {
	st.orders.allow(0.25)
	if err := st.orders.start(ctx); err != nil {
		return err
	}
	if err := errors.Join(st.fulfillment.start(ctx), st.analytics.start(ctx)); err != nil {
		return err
	}
	st.say("3. the order service publishes %d events by order id, acks=all, each with a record id, up to %d a second;", st.records, demoPace)
	st.say("   the consumer groups fulfillment and analytics read at their own pace, each with its own committed offsets")
	return nil
}

// loseResponse is chapter 4: the brokers have stored a batch and answered, but the answer never arrives.
func (st *story) loseResponse(ctx context.Context) error {
	if err := st.until(ctx, 0.15); err != nil {
		return err
	}
	lost := st.link.loseNextProduceResponse()
	st.orders.allow(0.4)
	select {
	case <-lost:
	case <-ctx.Done():
		return fmt.Errorf("no response was lost: %w", ctx.Err())
	}
	st.say("4. a response got lost: stored and answered by a leader, cut off on the way; the client repeats the same record ids")
	return st.repeatAsAnother(ctx)
}

// repeatAsAnother is what an order service does that was started again and does not know what was acknowledged: another client, with another
// session, publishes the newest events again with the same record ids.
func (st *story) repeatAsAnother(ctx context.Context) error {
	if err := st.waitFor(ctx, func() bool { return st.orders.acked.Load() >= demoRepeats }); err != nil {
		return err
	}
	var err error
	if st.repeated, st.repeatWrong, err = st.orders.repeat(ctx, demoRepeats); err != nil {
		return fmt.Errorf("repeat the newest events: %s", reason(err))
	}
	st.say("   the order service, started again, publishes its last %d events once more with the same record ids: %d answers differ from the first",
		st.repeated, st.repeatWrong)
	return nil
}

// crashWorker is chapter 5: the worker has applied a batch and dies before it commits.
func (st *story) crashWorker(ctx context.Context) error {
	if err := st.until(ctx, 0.3); err != nil {
		return err
	}
	st.orders.allow(0.5)
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

// killLeader is chapter 6. Events go on being published from before the kill until well after it.
func (st *story) killLeader(ctx context.Context) error {
	if err := st.until(ctx, 0.45); err != nil {
		return err
	}
	partitions, err := demoPartitionsOf(ctx, st.admin, st.cluster.brokers[0].id)
	if err != nil {
		return err
	}
	busiest, used := st.orders.busiest()
	st.victim = st.cluster.broker(partitions[busiest].leader)
	if st.victim == nil {
		return fmt.Errorf("partition %d has no leader", busiest)
	}
	var led []int32
	for p, state := range partitions {
		if state.leader == st.victim.id && used[p] > 0 {
			led = append(led, p)
		}
	}
	st.led = len(led)
	st.orders.allow(0.65)
	if err := st.until(ctx, 0.55); err != nil {
		return err
	}
	acked, pid := st.orders.acked.Load(), st.victim.pid()
	st.victim.kill()
	st.orders.markNow()
	inFlight := st.orders.published.Load() - st.orders.acked.Load()
	st.orders.allow(0.85)
	st.say("6. kill -9 of broker process %d in the middle of the stream: %s, leader of partition %d, the busiest, and of %d others;",
		pid, st.victim, busiest, len(led)-1)
	st.say("   %d events acknowledged, %d on their way", acked, inFlight)
	going := func() bool { st.goingOn, st.gap = st.orders.sinceMark(led); return st.goingOn == st.led }
	if err := st.waitFor(ctx, going); err != nil {
		return fmt.Errorf("%d of %d partitions go on without %s: %w", st.goingOn, st.led, st.victim, err)
	}
	st.gap = st.gap.Round(time.Millisecond)
	st.say("   replicas in sync took over; the client repeats what was unanswered, and all %d partitions acknowledge new events", st.led)
	st.say("   %v after the kill", st.gap)
	return nil
}

// restartBroker is chapter 7: the dead broker comes back on what is left on its disk, while events are published.
func (st *story) restartBroker(ctx context.Context) error {
	if err := st.until(ctx, 0.75); err != nil {
		return err
	}
	began := time.Now()
	st.orders.allow(1)
	if err := st.cluster.run(ctx, st.victim); err != nil {
		return fmt.Errorf("the killed broker did not come back: %w", err)
	}
	st.restarted = true
	if err := st.connectAdmin(); err != nil {
		return err
	}
	up := time.Since(began).Round(time.Millisecond)
	if err := st.waitInSync(ctx, st.victim.id); err != nil {
		return fmt.Errorf("%s does not catch up: %w", st.victim, err)
	}
	st.say("7. broker %d started again as process %d on its old data, without help: ready after %v, in sync in all %d partitions after %v",
		st.victim.id, st.victim.pid(), up, st.caughtUp, time.Since(began).Round(time.Millisecond))
	return nil
}

// finish is chapter 8: everything is acknowledged and both readers have caught up.
func (st *story) finish(ctx context.Context) error {
	if err := st.orders.wait(ctx); err != nil {
		return err
	}
	st.say("8. all %d events acknowledged; fulfillment is %d behind, analytics %d",
		st.orders.acked.Load(), st.behind(st.fulfillment), st.behind(st.analytics))
	for _, r := range []*reader{st.fulfillment, st.analytics} {
		if err := r.reach(ctx, st.orders.ends()); err != nil {
			return fmt.Errorf("%s never reached the end: %w", r.name, err)
		}
		lag, err := r.lag(ctx, st.admin, st.orders.ends())
		if err != nil {
			return err
		}
		if lag != 0 {
			return fmt.Errorf("%s has committed everything, and the brokers tell a lag of %d", r.name, lag)
		}
	}
	st.say("   both have caught up: the brokers tell a lag of 0 for both groups")
	return nil
}

func (st *story) behind(r *reader) int64 {
	return max(0, st.orders.acked.Load()-r.distinct())
}

// replay is chapter 9: fulfillment is set back to the first record of the partition of order-42, and what it gets again is compared with what
// it got the first time. Nothing else comes again.
func (st *story) replay(ctx context.Context) error {
	partition := st.orders.partitionOf("order-42")
	if err := st.fulfillment.rewind(ctx, st.admin, partition); err != nil {
		return err
	}
	if err := st.fulfillment.reach(ctx, st.orders.ends()); err != nil {
		return fmt.Errorf("replay of partition %d: %w", partition, err)
	}
	events, others := st.fulfillment.delivered(partition)
	st.replayed, st.replayWrong = len(events), st.fulfillment.compare(partition, events)+others
	st.say("9. replay: fulfillment reset to offset 0 of partition %d, the one of order-42: %d events delivered again, %d different",
		partition, st.replayed, st.replayWrong)
	return nil
}

// auditLog is the last chapter: all partitions from offset 0, for the table.
func (st *story) auditLog(ctx context.Context) error {
	if err := st.audit.readAll(ctx, st.orders.ends()); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	st.say("10. read all %d partitions from offset 0 and compared every event with what was acknowledged", demoPartitions)
	return nil
}
