package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

const (
	demoTopic      = "order-events"
	demoPartitions = 64
	// demoTimeMax ends a demonstration that hangs; a sound one takes a few seconds.
	demoTimeMax = 60 * time.Second
	// demoPace is how many records the order service publishes a second: the kill must come in the middle of a stream.
	demoPace = 2500
	// demoRecords is the default length of the story.
	demoRecords = 6000
	// demoEventsPerOrder is how many events each order goes through.
	demoEventsPerOrder = 12
)

const demoLong = `Tell the order story, end to end, on a throw-away broker, and check every promise on the way.

The broker is a process of its own (` + "`strandline dev`" + ` of this binary, data in a temporary directory), so that its kill -9 is a real one. An order
service publishes to order-events, 64 partitions, by order id, idempotently and with acks=all. Two services, fulfillment and analytics,
read at their own pace, each as a consumer group with its own committed offsets. Then: a response is lost on the way, a worker crashes, the broker is killed
in the middle of the stream and started again, and one partition is replayed from its first record.

Each step is printed and, last, a table of the guarantees with the counts behind them. Exit code 0 only if all of them held.

It runs on one broker; clusters come with a later release.`

func newDemoCommand(a *app) *cobra.Command {
	records := demoRecords
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show the whole story on a throw-away broker, and check every guarantee",
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

// demoRecordsMin leaves room for every chapter; demoRecordsMax keeps the bookkeeping of the checks in memory.
const (
	demoRecordsMin = 600
	demoRecordsMax = 1_000_000
)

// demo runs the story. Whatever happens, the broker is stopped and the directory removed before it returns.
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
		return &failure{what: fmt.Sprintf("the demonstration did not end within %v", demoTimeMax), why: err}
	case err != nil:
		return &failure{what: "the demonstration broke off", why: err, todo: st.broker.lastWords()}
	}
	st.close() // nothing moves while it is judged
	return a.printVerdicts(a.printer(s), st.check())
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
	dir     string
	records int
	say     func(format string, args ...any)

	broker      *demoBroker
	link        *demoLink
	orders      *orderService
	fulfillment *reader
	analytics   *reader
	audit       *auditor
	flush       string // what the broker says an acknowledgement is worth

	redelivered int // by the crash of the worker
	replayed    int
	replayWrong int
}

func newStory(dir string, records int) *story {
	link := &demoLink{}
	st := &story{
		dir: dir, records: records, link: link,
		broker: &demoBroker{dataDir: filepath.Join(dir, "data"), logFile: filepath.Join(dir, "broker.log")},
		orders: newOrderService(link, records),
		audit:  newAuditor(link),
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
	st.broker.kill()
}

// tell runs the chapters in order.
func (st *story) tell(ctx context.Context) error {
	for _, chapter := range []func(context.Context) error{
		st.startBroker, st.createTopic, st.startServices, st.loseResponse, st.crashWorker, st.killBroker, st.finish, st.replay, st.auditLog,
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

// servicesErr is the first error of the services that run beside the story.
func (st *story) servicesErr() error {
	return errors.Join(st.orders.failed(), st.fulfillment.failed(), st.analytics.failed())
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
