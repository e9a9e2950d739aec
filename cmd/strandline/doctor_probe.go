package main

import (
	"context"
	"crypto/x509"
	"encoding/binary"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/config"
	"strandline.dev/internal/wire"
)

// checkup is what was found out, before it is judged.
type checkup struct {
	settings settings
	named    []*probe           // the addresses that a person gave
	told     []*probe           // the addresses that the first of named that answers gives to clients
	view     *clusterView       // nil: nobody told
	viewErr  error              // why not
	minISR   map[string]int     // by topic
	files    map[string]float64 // of the node behind --http; nil: not asked, or not told
}

// probe is what one address showed.
type probe struct {
	address string
	node    int32 // which is said to be there; -1: nobody said
	// dialErr is why no connection came about, err why there was no Kafka on it.
	dialErr, err error
	// speaksTLS says that there is TLS; certificate is what it shows.
	speaksTLS   bool
	certificate *x509.Certificate
	clusterID   string
	brokers     []kmsg.MetadataResponseBroker
	is          int32 // the node that is there; -1: not known
	apis        map[int16]kmsg.ApiVersionsResponseApiKey
	clock       clockReading
	disk        diskReading
	replicas    int // default.replication.factor; 0: not told
}

// clockReading is a node's clock, and between which two moments of this machine's it was read.
type clockReading struct{ from, to, node time.Time }

// skew is by how much a clock differs from this machine's for certain.
func (c clockReading) skew() time.Duration {
	switch {
	case c.node.Before(c.from):
		return c.node.Sub(c.from)
	case c.node.After(c.to):
		return c.node.Sub(c.to)
	}
	return 0
}

// diskReading is a node's data directory; known is false when it was not told.
type diskReading struct {
	known         bool
	err           error
	total, usable int64
	room          diskRoom
	lost          int // replicas that could not be opened
}

// diskRoom is how a node stands to its disk limit; without a limit it was not told. refusal is why it takes no records.
type diskRoom struct {
	used, limit int64
	refusal     string
}

// roomOf reads it from a directory of DescribeLogDirs.
func roomOf(d *kmsg.DescribeLogDirsResponseDir) (r diskRoom) {
	d.UnknownTags.Each(func(tag uint32, v []byte) {
		if tag == wire.TagDiskRoom && len(v) >= 16 {
			r = diskRoom{int64(binary.BigEndian.Uint64(v)), int64(binary.BigEndian.Uint64(v[8:])), string(v[16:])}
		}
	})
	return r
}

// examine asks the addresses that were named, then those that they give, all at once.
func examine(ctx context.Context, s settings) checkup {
	ctx, cancel := context.WithTimeout(ctx, 2*s.timeout)
	defer cancel()
	c := checkup{settings: s}
	for _, address := range s.brokers {
		c.named = append(c.named, &probe{address: address, node: -1})
	}
	probeAll(ctx, s, c.named)
	first := slices.IndexFunc(c.named, func(p *probe) bool { return p.err == nil && p.dialErr == nil })
	if first < 0 {
		return c
	}
	for _, b := range c.named[first].brokers {
		c.told = append(c.told, &probe{address: net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port))), node: b.NodeID, clusterID: c.named[first].clusterID})
	}
	probeAll(ctx, s, c.told)
	// What is asked of the cluster goes to a broker that answers here: others may be told wrongly.
	s.brokers = []string{c.named[first].address}
	c.view, c.minISR, c.viewErr = examineCluster(ctx, s)
	if s.httpGiven || isLoopback(c.named[first].address) { // of a node on this machine the default is right, or nobody answers
		c.files = readMetrics(ctx, s.http+"/metrics", "process_open_fds", "process_max_fds")
	}
	return c
}

func examineCluster(ctx context.Context, s settings) (*clusterView, map[string]int, error) {
	session, err := openSession(s)
	if err != nil {
		return nil, nil, err
	}
	defer session.close()
	ctx, cancel := session.bounded(ctx)
	defer cancel()
	v, err := session.view(ctx)
	if err != nil {
		return nil, nil, err
	}
	var topics []string
	for _, p := range v.Partitions {
		if !p.Internal && !slices.Contains(topics[max(0, len(topics)-1):], p.Topic) {
			topics = append(topics, p.Topic)
		}
	}
	minISR := map[string]int{}
	for some := range slices.Chunk(topics, describePage) {
		described, err := session.admin.DescribeTopicConfigs(ctx, some...)
		if err != nil {
			return v, minISR, err
		}
		for _, r := range described {
			for _, c := range r.Configs {
				if n, err := strconv.Atoi(c.MaybeValue()); c.Key == "min.insync.replicas" && err == nil {
					minISR[r.Name] = n
				}
			}
		}
	}
	return v, minISR, nil
}

func probeAll(ctx context.Context, s settings, all []*probe) {
	places := make(chan struct{}, probesMax)
	var asked sync.WaitGroup
	for _, p := range all {
		places <- struct{}{}
		asked.Go(func() {
			defer func() { <-places }()
			p.run(ctx, s)
		})
	}
	asked.Wait()
}

// run asks one address everything.
func (p *probe) run(ctx context.Context, s settings) {
	p.is = -1
	dialer := net.Dialer{Timeout: min(dialTimeoutMax, s.timeout)}
	nc, err := dialer.DialContext(ctx, "tcp", p.address)
	if err != nil {
		p.dialErr = err
		return
	}
	_ = nc.Close()
	s.brokers = []string{p.address}
	session, err := openSession(s, kgo.RequestRetries(0))
	if err != nil {
		p.err = err
		return
	}
	defer session.close()
	within, cancel := session.bounded(ctx)
	defer cancel()
	at := session.client.SeedBrokers()[0]
	p.err = p.greet(within, at)
	if p.err != nil || s.tls {
		p.certificate, p.speaksTLS = lookAtTLS(ctx, p.address, min(dialTimeoutMax, s.timeout))
	}
	if p.err != nil {
		return
	}
	p.identify(within, at)
	p.readClock(within, at)
	p.readDisk(within, at)
	p.readDefaults(within, at)
}

// greet learns the versions and, if nobody has said it yet, who is in the cluster.
func (p *probe) greet(ctx context.Context, at *kgo.Broker) error {
	about := kmsg.NewPtrApiVersionsRequest()
	about.ClientSoftwareName, about.ClientSoftwareVersion = cliSoftware, softwareVersion()
	answer, err := at.Request(ctx, about)
	if err != nil {
		return err
	}
	versions := answer.(*kmsg.ApiVersionsResponse)
	if err := kerr.ErrorForCode(versions.ErrorCode); err != nil {
		return err
	}
	p.apis = map[int16]kmsg.ApiVersionsResponseApiKey{}
	for _, k := range versions.ApiKeys {
		p.apis[k.ApiKey] = k
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{} // none; null would be all
	if answer, err = at.Request(ctx, req); err != nil {
		return err
	}
	told := answer.(*kmsg.MetadataResponse)
	p.brokers = told.Brokers
	if told.ClusterID != nil {
		p.clusterID = *told.ClusterID
	}
	return nil
}

// identify finds out which of the cluster's nodes is there: a node tells its own configs only.
func (p *probe) identify(ctx context.Context, at *kgo.Broker) {
	for _, b := range p.brokers {
		r := kmsg.NewDescribeConfigsRequestResource()
		r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(b.NodeID)), []string{config.DrainKey}
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.Resources = append(req.Resources, r)
		answer, err := at.Request(ctx, req)
		if err != nil {
			return
		}
		for _, r := range answer.(*kmsg.DescribeConfigsResponse).Resources {
			if r.ErrorCode == 0 {
				p.is = b.NodeID
				return
			}
		}
	}
}
