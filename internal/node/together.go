package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
)

const (
	// TogetherMax bounds the nodes of one process: their ports go up by portStep a node.
	TogetherMax = 9
	portStep    = 10
	// togetherReplicas is default.replication.factor, and the number of controllers, of a cluster in one process that has as many nodes.
	togetherReplicas = 3
	// stopTimeMax bounds a graceful stop: requests that are still parked then are cut off, as a crash would.
	stopTimeMax = 30 * time.Second
)

// Together makes the options of a cluster for development in one process; one is the configuration of the first node. Of several, each has
// a directory of its own below one's, and an open cluster listener on a free port of loopback, since each must know all of them before it
// starts. Whoever does not start them closes those.
func Together(machine sys.Machine, one config.Node, count int) ([]Options, error) {
	if count == 1 {
		return []Options{{Machine: machine, Config: one, Dev: true}}, one.Validate()
	}
	var controllers []string
	voters := map[bool]int{true: togetherReplicas, false: 1}[count >= togetherReplicas]
	all := make([]Options, count)
	release := func(err error) ([]Options, error) {
		for _, o := range all {
			if o.ClusterListener != nil {
				_ = o.ClusterListener.Close()
			}
		}
		return nil, err
	}
	for i := range all {
		const address = "127.0.0.1:0"
		l, err := machine.Net.Listen(address)
		if err != nil {
			return release(&BindError{Key: "cluster.address", Door: "cluster listener", Address: address, Err: err})
		}
		all[i].ClusterListener = l
		if i < voters {
			controllers = append(controllers, fmt.Sprintf("%d@%s", i+1, l.Addr()))
		}
	}
	for i := range all {
		c := one
		c.Node.ID, c.Data.Dir = kafka.NodeID(i+1), TogetherDir(one.Data.Dir, i)
		c.Cluster.Address, c.Cluster.Controllers = all[i].ClusterListener.Addr().String(), controllers
		var err error
		if c.Kafka, err = one.Kafka.WithPreset(map[string]string{"default.replication.factor": strconv.Itoa(min(count, togetherReplicas))}); err != nil {
			return release(err)
		}
		if i >= voters {
			c.Roles = []string{config.RoleBroker}
		}
		c.Listeners = slices.Clone(one.Listeners)
		errs := []error{shiftPort(&c.Listeners[0].Address, i)}
		if c.HasHTTP() {
			errs = append(errs, shiftPort(&c.HTTP.Address, i))
		}
		if err := errors.Join(append(errs, c.Validate())...); err != nil {
			return release(err)
		}
		all[i].Machine, all[i].Config, all[i].Dev, all[i].Together = machine, c, true, true
	}
	return all, nil
}

// TogetherDir is where the i-th of several nodes, counted from 0, has its data below a common directory.
func TogetherDir(dir string, i int) string { return filepath.Join(dir, fmt.Sprintf("n%d", i+1)) }

// shiftPort moves an address on to the ports of the i-th node, unless any port will do.
func shiftPort(address *string, i int) error {
	host, port, err := net.SplitHostPort(*address)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil || number == 0 {
		return err
	}
	*address = net.JoinHostPort(host, strconv.Itoa(number+i*portStep))
	return nil
}

// StartAll starts nodes of one process at once, since they wait for each other, and none if one cannot start: the error is then the first.
func StartAll(ctx context.Context, all []Options) ([]*Node, error) {
	starting, giveUp := context.WithCancel(ctx)
	defer giveUp()
	nodes := make([]*Node, len(all))
	var first atomic.Pointer[error]
	var done sync.WaitGroup
	for i, o := range all {
		done.Go(func() {
			var err error
			if nodes[i], err = Start(starting, o); err != nil {
				first.CompareAndSwap(nil, &err)
				giveUp()
			}
		})
	}
	done.Wait()
	if err := first.Load(); err != nil {
		_ = StopAll(ctx, nodes) // what stopped the start is the error to tell
		return nil, *err
	}
	return nodes, nil
}

// StopAll stops those that run, all at once, also when ctx has ended.
func StopAll(ctx context.Context, nodes []*Node) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeMax)
	defer cancel()
	errs := make([]error, len(nodes))
	var done sync.WaitGroup
	for i, n := range nodes {
		if n != nil {
			done.Go(func() { errs[i] = n.Stop(ctx) })
		}
	}
	done.Wait()
	return errors.Join(errs...)
}
