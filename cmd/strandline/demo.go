package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	demoTopic      = "order-events"
	demoPartitions = 64
	demoReplicas   = 3
	demoMinISR     = 2
	// demoTimeMax ends a demonstration that hangs, so that it has said why and cleaned up within a minute; a sound one takes a few seconds.
	demoTimeMax = 57 * time.Second
	// demoPace is how many records the order service publishes a second, at most: the kill must come in the middle of a stream.
	demoPace = 2500
	// demoRecords is the default length of the story.
	demoRecords = 6000
	// demoRepeats is how many events are published again with the same record ids.
	demoRepeats = 50
	// demoEventsPerOrder is how many events each order goes through.
	demoEventsPerOrder = 12
)

const demoLong = `Tell the order story, end to end, on a throw-away cluster, and check every promise on the way.

Three brokers in three racks, each a process of its own (` + "`strandline serve`" + ` of this binary on free ports of loopback, data in a temporary
directory), so that a kill -9 is a real one. An order service publishes to order-events, 64 partitions with 3 replicas and min ISR 2, by order
id, with acks=all and a record id in each event; it has no producer sequence, so that nothing but the ids tells a repeat. Two services, fulfillment and analytics, read at their own pace, each as a consumer group with its own
committed offsets. Then: a response is lost on the way and the publish is repeated with the same record ids, a worker crashes, the leader of the
busiest partition is killed in the middle of the stream and later started again, and fulfillment is reset to the first record of a partition
and reads it once more.

Each step is printed and, last, a table of the guarantees with the counts behind them. Exit code 0 only if all of them held. It takes less than a
minute or says what did not come about; whatever happens, the processes are ended and the directory is removed.`

func newDemoCommand(a *app) *cobra.Command {
	records := demoRecords
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole story on a throw-away cluster, and check every guarantee",
		Long:  demoLong,
		Example: `  strandline demo
  strandline demo --records 20000
  strandline demo -o json`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), records) },
	}
	cmd.Flags().IntVar(&records, "records", records, "how many records the order service publishes")
	return cmd
}

// demoRecordsMin leaves room for every chapter; demoRecordsMax can be published within demoTimeMax.
const (
	demoRecordsMin = 600
	demoRecordsMax = 60_000
)

// demo runs the story. Whatever happens, the brokers are ended and the directory is removed before it returns.
func (a *app) demo(ctx context.Context, records int) (err error) {
	if records < demoRecordsMin || records > demoRecordsMax {
		return usagef("--records %d: want %d to %d", records, demoRecordsMin, demoRecordsMax)
	}
	s, err := a.settings()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "strandline-demo-")
	if err != nil {
		return &failure{what: "no temporary directory", why: err, todo: "set TMPDIR to one"}
	}
	defer os.RemoveAll(dir)
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, demoTimeMax)
	defer cancel()

	st := newStory(dir, records)
	st.say = storyTeller(a, s)
	defer st.close()
	err = st.tell(ctx)
	switch {
	case caller.Err() != nil:
		return &failure{what: "interrupted", todo: "nothing is left behind"}
	case err != nil && ctx.Err() != nil:
		return &failure{what: fmt.Sprintf("the demonstration did not end within %v", demoTimeMax), why: whole(err), todo: conditions(st.cluster.brokers)}
	case err != nil:
		return &failure{what: "the demonstration broke off", why: whole(err), todo: conditions(st.cluster.brokers)}
	}
	st.close() // nothing moves while it is judged
	return a.printVerdicts(a.printer(s), st.check())
}

// whole keeps what surrounds the error of a client, above all which broker it is about; reason would drop it.
func whole(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), context.DeadlineExceeded.Error(), "not in time"))
}

// storyTeller prints the steps: on stdout, or on stderr when stdout is for JSON.
func storyTeller(a *app, s settings) func(format string, args ...any) {
	var w io.Writer = a.stdout
	if s.json {
		w = a.stderr
	}
	start := time.Now()
	return func(format string, args ...any) {
		fmt.Fprintf(w, "%6.2fs  %s\n", time.Since(start).Seconds(), fmt.Sprintf(format, args...))
	}
}

// story is the state of one demonstration.
type story struct {
	records int
	say     func(format string, args ...any)

	cluster     *demoCluster
	link        *demoLink
	admin       *kgo.Client // once the cluster runs
	orders      *orderService
	fulfillment *reader
	analytics   *reader
	audit       *auditor

	repeated     int // events published again with the same record id, by another client
	repeatWrong  int // and those of them that were not answered with their first place
	redelivered  int // by the crash of the worker
	victim       *demoBroker
	led, goingOn int           // partitions whose leader was killed, and those of them that took events afterwards
	gap          time.Duration // until the last of them did
	restarted    bool
	caughtUp     int // partitions with all their replicas in sync after the restart
	replayed     int
	replayWrong  int
}

func newStory(dir string, records int) *story {
	link := &demoLink{}
	st := &story{
		records: records, link: link,
		cluster: newDemoCluster(dir),
		orders:  newOrderService(link, records),
		audit:   newAuditor(link),
	}
	st.fulfillment = newReader("fulfillment", link, readerPace{batch: 400})
	st.analytics = newReader("analytics", link, readerPace{batch: 90, rest: 50 * time.Millisecond})
	return st
}

// close ends everything that still runs. It may be called again.
func (st *story) close() {
	st.orders.close()
	st.fulfillment.stop()
	st.analytics.stop()
	if st.admin != nil {
		st.admin.Close()
	}
	st.cluster.close()
}

// tell runs the chapters in order.
func (st *story) tell(ctx context.Context) error {
	for _, chapter := range []func(context.Context) error{
		st.startCluster, st.createTopic, st.startServices, st.loseResponse, st.crashWorker, st.killLeader, st.restartBroker, st.finish, st.replay,
		st.auditLog,
	} {
		if err := chapter(ctx); err != nil {
			return err
		}
		if err := st.servicesErr(); err != nil {
			return err
		}
	}
	return nil
}

// servicesErr is what has gone wrong beside the story: in a service, or with a broker that ended by itself.
func (st *story) servicesErr() error {
	return errors.Join(st.cluster.fallen(), st.orders.failed(), st.fulfillment.failed(), st.analytics.failed())
}

// until waits for the order service to have published part of the records (0..1).
func (st *story) until(ctx context.Context, part float64) error {
	target := int64(part * float64(st.records))
	return st.waitFor(ctx, func() bool { return st.orders.published.Load() >= target })
}

// waitFor waits for a condition, or for the first error of a service.
func (st *story) waitFor(ctx context.Context, holds func() bool) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := st.servicesErr(); err != nil {
			return err
		}
	}
	return nil
}
