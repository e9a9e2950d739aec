package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The bars of many connections.
var (
	connectionBar = bar{unit: "KiB", limit: 40}
	stormBar      = bar{unit: "s", limit: 20}
)

// answerMax bounds an answer that is read.
const answerMax = 64 << 20

// formatter writes request headers.
var formatter = kmsg.NewRequestFormatter(kmsg.FormatterClientID("scale"))

// ask sends a request and reads its answer away.
func ask(c net.Conn, req kmsg.Request) error {
	if err := c.SetDeadline(time.Now().Add(requestTime)); err != nil {
		return err
	}
	if _, err := c.Write(formatter.AppendRequest(nil, req, 1)); err != nil {
		return err
	}
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > answerMax {
		return fmt.Errorf("an answer of %d bytes", size)
	}
	_, err := io.CopyN(io.Discard, c, int64(size))
	return err
}

// greet dials and does what every client does first: ApiVersions, and Metadata of one topic, or of all if it names none.
func greet(addr, topic string) (net.Conn, error) {
	c, err := net.DialTimeout("tcp", addr, requestTime)
	if err != nil {
		return nil, err
	}
	versions := kmsg.NewPtrApiVersionsRequest()
	versions.Version, versions.ClientSoftwareName, versions.ClientSoftwareVersion = 3, "scale", "1"
	meta := kmsg.NewPtrMetadataRequest()
	meta.Version = 12
	if topic != "" {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &topic
		meta.Topics = append(meta.Topics, t)
	}
	if err := errors.Join(ask(c, versions), ask(c, meta)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// storm greets on so many connections at once and returns them, with how long the last took. A refused dial is tried again: the node
// may still be starting.
func (n *node) storm(ctx context.Context, count int, topic string) ([]net.Conn, time.Duration, error) {
	began := time.Now()
	conns, errs := make([]net.Conn, count), make([]error, count)
	var wg sync.WaitGroup
	for i := range count {
		wg.Go(func() {
			for {
				conns[i], errs[i] = greet(n.addr, topic)
				if errs[i] == nil || time.Since(began) > requestTime || sleep(ctx, 50*time.Millisecond) != nil {
					return
				}
			}
		})
	}
	wg.Wait()
	return conns, time.Since(began), errors.Join(errs...)
}

func closeAll(conns []net.Conn) {
	for _, c := range conns {
		if c != nil {
			c.Close() //nolint:errcheck // nothing was being written
		}
	}
}

// manyConnections measures idle connections, and storms of clients that come back all at once.
func manyConnections(ctx context.Context, b *bench) error {
	n, err := b.start()
	if err != nil {
		return err
	}
	defer n.stop()
	if _, err := n.create(ctx, nil, 6, "small"); err != nil {
		return err
	}
	if err := n.noteConnections(ctx); err != nil {
		return err
	}
	if _, err := n.create(ctx, nil, b.partitions, "all"); err != nil {
		return err
	}
	conns, took, err := n.storm(ctx, b.connections, "all")
	closeAll(conns)
	if err != nil {
		return err
	}
	b.note(fmt.Sprintf("storm: each asks for all %d partitions", b.partitions), took.Seconds(), bar{unit: "s"})
	return nil
}

func (n *node) noteConnections(ctx context.Context) error {
	b := n.bench
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	before, err := n.rss()
	if err != nil {
		return err
	}
	conns, took, err := n.storm(ctx, b.connections, "small")
	defer func() { closeAll(conns) }()
	if err != nil {
		return err
	}
	b.note(fmt.Sprintf("%d connections made at once", b.connections), took.Seconds(), stormBar)
	if err := sleep(ctx, 5*time.Second); err != nil {
		return err
	}
	after, err := n.rss()
	if err != nil {
		return err
	}
	b.note("memory of an idle connection", (after-before)*1024/float64(b.connections), connectionBar)
	cpu, err := n.load(ctx)
	if err != nil {
		return err
	}
	b.note(fmt.Sprintf("%d idle connections: CPU", b.connections), cpu, bar{unit: "% a core"})
	closeAll(conns)
	if conns, took, err = n.storm(ctx, b.connections, "small"); err != nil {
		return err
	}
	b.note("storm: all dropped and came back", took.Seconds(), stormBar)
	n.kill()
	closeAll(conns)
	if err := n.launch(); err != nil {
		return err
	}
	if conns, _, err = n.storm(ctx, b.connections, "small"); err != nil {
		return err
	}
	b.note("storm: kill -9 of the node, until the last was answered", time.Since(n.began).Seconds(), stormBar)
	return nil
}

// The consumers that only wait: groups of ten over one topic, and clients with fixed partitions.
const groupMembers = 10

// manyConsumers measures consumers that wait for records that do not come.
func manyConsumers(ctx context.Context, b *bench) error {
	n, err := b.start()
	if err != nil {
		return err
	}
	defer n.stop()
	if _, err := n.create(ctx, nil, groupMembers*groupMembers, "quiet"); err != nil {
		return err
	}
	idle, err := n.load(ctx)
	if err != nil {
		return err
	}
	b.note("no consumers: CPU", idle, bar{unit: "% a core"})
	fixed := map[string]map[int32]kgo.Offset{"quiet": {}}
	for p := range int32(groupMembers) {
		fixed["quiet"][p] = kgo.NewOffset().AtEnd()
	}
	err = n.noteConsumers(ctx, "idle consumers of 10 partitions", func(int) []kgo.Opt {
		return []kgo.Opt{kgo.ConsumePartitions(fixed)}
	})
	if err != nil {
		return err
	}
	return n.noteConsumers(ctx, "idle consumers in groups of 10", func(i int) []kgo.Opt {
		return []kgo.Opt{kgo.ConsumeTopics("quiet"), kgo.ConsumerGroup("g" + strconv.Itoa(i/groupMembers))}
	})
}

func (n *node) noteConsumers(ctx context.Context, what string, opts func(i int) []kgo.Opt) error {
	b := n.bench
	before, err := n.rss()
	if err != nil {
		return err
	}
	var clients []*kgo.Client
	defer func() {
		var wg sync.WaitGroup
		for _, cl := range clients {
			wg.Go(cl.Close)
		}
		wg.Wait()
	}()
	for i := range b.consumers {
		cl, err := n.client(opts(i)...)
		if err != nil {
			return err
		}
		clients = append(clients, cl)
	}
	if err := sleep(ctx, b.settle); err != nil {
		return err
	}
	cpu, err := n.load(ctx)
	if err != nil {
		return err
	}
	after, err := n.rss()
	if err != nil {
		return err
	}
	b.note(fmt.Sprintf("%d %s: CPU", b.consumers, what), cpu, bar{unit: "% a core"})
	b.note(fmt.Sprintf("%d %s: memory of one", b.consumers, what), (after-before)*1024/float64(b.consumers), bar{unit: "KiB"})
	return nil
}
