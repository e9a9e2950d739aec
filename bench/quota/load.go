package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// recordBytes is the value of a record; otherEvery is the pace of the other client, one record at a time.
	recordBytes = 1024
	otherEvery  = 2 * time.Millisecond
	// tick is how often the producer publishes what has fallen due.
	tick = 5 * time.Millisecond
	// heavyBuffer is how many records the producer keeps unsent; what falls due beyond that is not published.
	heavyBuffer = 2000
	heavyBatch  = 64 << 10
)

// client is a process of this program that is a client.
type client struct {
	cmd *exec.Cmd
	in  io.Closer // its end is the sign to stop
	out io.Reader
}

// begin starts a client.
func begin(role, address string, o options) (*client, error) {
	cmd := exec.Command(os.Args[0], "-role", role, "-broker", address, "-quota", fmt.Sprint(o.quota), "-times", fmt.Sprint(o.times), "-for", o.span.String())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &client{cmd, in, out}, cmd.Start()
}

// end waits for what a client has measured: three numbers.
func (c *client) end() (got [3]float64, err error) {
	_, err = fmt.Fscan(c.out, &got[0], &got[1], &got[2])
	c.in.Close()
	if waited := c.cmd.Wait(); err == nil {
		err = waited
	}
	return got, err
}

// other measures the other client for one span.
func other(address string, o options) ([3]float64, error) {
	c, err := begin("other", address, o)
	if err != nil {
		return [3]float64{}, err
	}
	return c.end()
}

// waits counts how often the broker tells the client to wait.
type waits struct{ n atomic.Int64 }

// OnBrokerThrottle is called by the client.
func (w *waits) OnBrokerThrottle(kgo.BrokerMetadata, time.Duration, bool) { w.n.Add(1) }

// play is a client: it warms up, measures, and prints three numbers.
func play(role, address string, o options) error {
	var waits waits
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(address), kgo.ClientID(role), kgo.DefaultProduceTopic(role), kgo.ProducerBatchMaxBytes(heavyBatch), kgo.ProducerLinger(0),
		kgo.MaxBufferedRecords(heavyBuffer), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.WithHooks(&waits),
	)
	if err != nil {
		return err
	}
	defer cl.Close()
	if role == heavyID {
		return heavy(cl, o, &waits)
	}
	return bystand(cl, o)
}

// bystand publishes one record at a time and prints the p99 of the acknowledgements, in ms.
func bystand(cl *kgo.Client, o options) error {
	var all []time.Duration
	value := make([]byte, recordBytes)
	began := time.Now()
	for due := began; time.Since(began) < warmUp+o.span; due = due.Add(otherEvery) {
		<-time.After(time.Until(due))
		sent := time.Now()
		if err := cl.ProduceSync(context.Background(), &kgo.Record{Value: value}).FirstErr(); err != nil {
			return err
		}
		if sent.Sub(began) > warmUp {
			all = append(all, time.Since(sent))
		}
		if late := time.Since(due); late > otherEvery {
			due = due.Add(late.Truncate(otherEvery)) // it does not catch up: it would be another load
		}
	}
	slices.Sort(all)
	_, err := fmt.Println(float64(all[len(all)*99/100])/float64(time.Millisecond), len(all), 0)
	return err
}

// heavy publishes as much as falls due and prints the bytes of values that were acknowledged a second, those that fell due, and how often the broker
// told it to wait.
func heavy(cl *kgo.Client, o options, waits *waits) error {
	var acked, due atomic.Int64
	var failed atomic.Pointer[error]
	value := make([]byte, recordBytes)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(tick)
		defer t.Stop()
		last, owed := time.Now(), 0.0
		for {
			select {
			case <-stop:
				return
			case now := <-t.C:
				owed += o.times * o.quota * now.Sub(last).Seconds() / recordBytes
				last = now
			}
			for ; owed >= 1; owed-- {
				due.Add(recordBytes)
				cl.TryProduce(context.Background(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
					switch {
					case err == nil:
						acked.Add(recordBytes)
					case !errors.Is(err, kgo.ErrMaxBuffered):
						failed.Store(&err)
					}
				})
			}
		}
	})
	<-time.After(warmUp)
	a0, d0, t0 := acked.Load(), due.Load(), time.Now()
	<-time.After(o.span)
	took := time.Since(t0).Seconds()
	a, d := float64(acked.Load()-a0)/took, float64(due.Load()-d0)/took
	close(stop)
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	_, err := fmt.Println(a, d, waits.n.Load())
	return err
}
