package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	// demoBrokers is the smallest cluster that survives the loss of any one of its brokers.
	demoBrokers = 3
	// demoReadyMax bounds the start of the brokers' processes; it is far above what a start takes.
	demoReadyMax = 30 * time.Second
	// demoStartsMax bounds the attempts to start the cluster when other programs take its ports between the choice and the start.
	demoStartsMax = 3
	// demoPortMin and demoPortEnd are where the ports are chosen: below the range from which the usual systems take the near ends of
	// connections, so that no client's connection takes the port of a broker that was killed and is to start again.
	demoPortMin, demoPortEnd = 20_000, 32_000
	// demoPortTries bounds the search for a free port.
	demoPortTries = 1000
)

// demoCluster is the brokers, each a controller too, in a rack of its own.
type demoCluster struct {
	dir     string
	brokers []*demoBroker
	// launches runs every start on one thread that lives as long as the cluster: where the kernel can end a child with its parent, the
	// parent is the thread that started it.
	launches chan func()
}

func newDemoCluster(dir string) *demoCluster {
	c := &demoCluster{dir: dir, launches: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for f := range c.launches {
			f()
		}
	}()
	return c
}

func (c *demoCluster) launch(cmd *exec.Cmd) error {
	endWithParent(cmd)
	err := make(chan error)
	c.launches <- func() { err <- cmd.Start() }
	return <-err
}

// close ends every process. It may be called again.
func (c *demoCluster) close() {
	c.killAll()
	if c.launches != nil {
		close(c.launches)
		c.launches = nil
	}
}

func (c *demoCluster) killAll() {
	for _, b := range c.brokers {
		b.kill()
	}
}

// start chooses ports and starts all brokers; it returns when all are ready.
func (c *demoCluster) start(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		if err := c.layOut(filepath.Join(c.dir, fmt.Sprintf("start-%d", attempt))); err != nil {
			return err
		}
		err := c.run(ctx, c.brokers...)
		if err == nil {
			return nil
		}
		c.killAll()
		if attempt == demoStartsMax || ctx.Err() != nil || !c.portsTaken() {
			return err
		}
	}
}

// layOut gives each broker its directory and its ports.
func (c *demoCluster) layOut(dir string) error {
	addresses, err := freeAddresses(2 * demoBrokers)
	if err != nil {
		return err
	}
	c.brokers = nil
	for i := range demoBrokers {
		c.brokers = append(c.brokers, &demoBroker{
			id: int32(i + 1), dir: filepath.Join(dir, fmt.Sprintf("n%d", i+1)), kafka: addresses[2*i], peer: addresses[2*i+1],
		})
	}
	return nil
}

// freeAddresses finds addresses of loopback that nobody listens at. All are held until all are found, so that no two are the same.
func freeAddresses(count int) ([]string, error) {
	var addresses []string
	var held []net.Listener
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	var last error
	for range demoPortTries {
		if len(addresses) == count {
			return addresses, nil
		}
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", demoPortMin+rand.IntN(demoPortEnd-demoPortMin)))
		if err != nil {
			last = err
			continue
		}
		held, addresses = append(held, l), append(addresses, l.Addr().String())
	}
	return nil, fmt.Errorf("no %d free ports of 127.0.0.1 from %d to %d: %w", count, demoPortMin, demoPortEnd, last)
}

// portsTaken says, when no broker runs, whether some other program listens at an address of one.
func (c *demoCluster) portsTaken() bool {
	for _, b := range c.brokers {
		for _, address := range []string{b.kafka, b.peer} {
			l, err := net.Listen("tcp", address)
			if err != nil {
				return true
			}
			_ = l.Close()
		}
	}
	return false
}

// run starts brokers and returns when they are ready, or with the names of those that are not, and why.
func (c *demoCluster) run(ctx context.Context, brokers ...*demoBroker) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	var controllers []string
	for _, b := range c.brokers {
		controllers = append(controllers, fmt.Sprintf("%d@%s", b.id, b.peer))
	}
	for _, b := range brokers {
		if err := b.start(exe, controllers, c.launch); err != nil {
			return err
		}
	}
	timer := time.NewTimer(demoReadyMax)
	defer timer.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := c.fallen(); err != nil {
			return err
		}
		if waiting := notReady(brokers); len(waiting) == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-timer.C:
			return fmt.Errorf("not ready within %v: %s", demoReadyMax, conditions(notReady(brokers)))
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", conditions(notReady(brokers)), ctx.Err())
		}
	}
}

func notReady(brokers []*demoBroker) (out []*demoBroker) {
	for _, b := range brokers {
		if !b.isReady() {
			out = append(out, b)
		}
	}
	return out
}

func conditions(brokers []*demoBroker) string {
	var out []string
	for _, b := range brokers {
		out = append(out, b.condition())
	}
	return strings.Join(out, "; ")
}

// fallen names the brokers that ended without being killed.
func (c *demoCluster) fallen() error {
	var out []*demoBroker
	for _, b := range c.brokers {
		if b.cmd != nil && closed(b.done) {
			out = append(out, b)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return errors.New(conditions(out))
}

func (c *demoCluster) addresses() (out []string) {
	for _, b := range c.brokers {
		out = append(out, b.kafka)
	}
	return out
}

// broker is the one with an id, nil if there is none.
func (c *demoCluster) broker(id int32) *demoBroker {
	for _, b := range c.brokers {
		if b.id == id {
			return b
		}
	}
	return nil
}

// survivor is any broker but one.
func (c *demoCluster) survivor(not int32) *demoBroker {
	for _, b := range c.brokers {
		if b.id != not {
			return b
		}
	}
	return nil
}

// demoPartition is where the replicas of a partition are.
type demoPartition struct {
	leader        int32
	replicas, isr []int32
}

// demoPartitionsOf asks one broker how the partitions of the topic stand: after a kill, one that has not been away is to be asked.
func demoPartitionsOf(ctx context.Context, client *kgo.Client, broker int32) (map[int32]demoPartition, error) {
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = kmsg.StringPtr(demoTopic)
	req.Topics = []kmsg.MetadataRequestTopic{topic}
	answer, err := client.Broker(int(broker)).RetriableRequest(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("broker %d, asked for the partitions: %s", broker, reason(err))
	}
	out := map[int32]demoPartition{}
	for _, t := range answer.(*kmsg.MetadataResponse).Topics {
		for _, p := range t.Partitions {
			out[p.Partition] = demoPartition{leader: p.Leader, replicas: p.Replicas, isr: p.ISR}
		}
	}
	return out, nil
}

// inSync counts the partitions that have a leader and all their replicas in sync.
func inSync(partitions map[int32]demoPartition) (n int) {
	for _, p := range partitions {
		if p.leader >= 0 && len(p.replicas) == demoReplicas && len(p.isr) == demoReplicas {
			n++
		}
	}
	return n
}
