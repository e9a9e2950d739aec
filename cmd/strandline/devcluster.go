package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/node"
)

const (
	// devNodesMax bounds the nodes of one `dev`: its ports go up by devPortStep a node.
	devNodesMax = 9
	devPortStep = 10
	// devReplicas is default.replication.factor of a `dev` cluster that has as many nodes.
	devReplicas = 3
)

// devCluster is the configuration of each node of a cluster in one process; one is that of the first. Their cluster listeners are open already,
// on free ports of loopback: each must know all of them before it starts.
func devCluster(one config.Node, count int) ([]node.Options, error) {
	var controllers []string
	voters := map[bool]int{true: devReplicas, false: 1}[count >= devReplicas]
	all := make([]node.Options, count)
	release := func(err error) ([]node.Options, error) {
		for _, o := range all {
			if o.ClusterListener != nil {
				_ = o.ClusterListener.Close()
			}
		}
		return nil, err
	}
	for i := range all {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return release(&failure{what: "no port for the nodes to talk to each other", why: err})
		}
		all[i].ClusterListener = l
		if i < voters {
			controllers = append(controllers, fmt.Sprintf("%d@%s", i+1, l.Addr()))
		}
	}
	for i := range all {
		c := one
		c.Node.ID, c.Data.Dir = kafka.NodeID(i+1), filepath.Join(one.Data.Dir, fmt.Sprintf("n%d", i+1))
		c.Cluster.Address, c.Cluster.Controllers = all[i].ClusterListener.Addr().String(), controllers
		c.Kafka.DefaultReplicationFactor = int16(min(count, devReplicas))
		if i >= voters {
			c.Roles = []string{config.RoleBroker}
		}
		c.Listeners = slices.Clone(one.Listeners)
		errs := []error{shiftPort(&c.Listeners[0].Address, i)}
		if c.HasHTTP() {
			errs = append(errs, shiftPort(&c.HTTP.Address, i))
		}
		if err := errors.Join(append(errs, c.Validate())...); err != nil {
			return release(usageError{err})
		}
		all[i].Config, all[i].Dev, all[i].Together = c, true, true
	}
	return all, nil
}

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
	*address = net.JoinHostPort(host, strconv.Itoa(number+i*devPortStep))
	return nil
}
