package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// readClock asks about the quorum: the node dates its answer by its own clock.
func (p *probe) readClock(ctx context.Context, at *kgo.Broker) {
	req := quorumRequest()
	p.clock.from = time.Now()
	answer, err := at.Request(ctx, req)
	if err != nil {
		return
	}
	p.clock.to = time.Now()
	for _, t := range answer.(*kmsg.DescribeQuorumResponse).Topics {
		for _, q := range t.Partitions {
			for _, r := range q.CurrentVoters {
				if seen := time.UnixMilli(r.LastFetchTimestamp); r.LastFetchTimestamp > 0 && seen.After(p.clock.node) {
					p.clock.node = seen
				}
			}
		}
	}
	// The node counts whole milliseconds.
	p.clock.from = p.clock.from.Truncate(time.Millisecond)
}

// readDisk asks for the room in the data directory.
func (p *probe) readDisk(ctx context.Context, at *kgo.Broker) {
	answer, err := at.Request(ctx, kmsg.NewPtrDescribeLogDirsRequest())
	if err != nil {
		p.disk.err = err
		return
	}
	resp := answer.(*kmsg.DescribeLogDirsResponse)
	p.disk.err = kerr.ErrorForCode(resp.ErrorCode)
	for i := range resp.Dirs {
		d := &resp.Dirs[i]
		if room := roomOf(d); room.limit > 0 {
			p.disk.room = room
		}
		if err := kerr.ErrorForCode(d.ErrorCode); err != nil {
			p.disk.err = err
			return
		}
		p.disk.known = p.disk.known || d.TotalBytes > 0
		p.disk.total, p.disk.usable = p.disk.total+max(0, d.TotalBytes), p.disk.usable+max(0, d.UsableBytes)
		for _, t := range d.Topics {
			for _, r := range t.Partitions {
				if r.OffsetLag < 0 {
					p.disk.lost++
				}
			}
		}
	}
}

// readDefaults asks how many replicas a topic gets unless it is told.
func (p *probe) readDefaults(ctx context.Context, at *kgo.Broker) {
	if p.is < 0 {
		return
	}
	const key = "default.replication.factor"
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName, r.ConfigNames = kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(p.is)), []string{key}
	req := kmsg.NewPtrDescribeConfigsRequest()
	req.Resources = append(req.Resources, r)
	answer, err := at.Request(ctx, req)
	if err != nil {
		return
	}
	for _, r := range answer.(*kmsg.DescribeConfigsResponse).Resources {
		for _, c := range r.Configs {
			if n, err := strconv.Atoi(textOf(c.Value)); c.Name == key && err == nil {
				p.replicas = n
			}
		}
	}
}

// lookAtTLS says whether there is TLS at an address, and which certificate it shows. Nothing is sent over the connection.
func lookAtTLS(ctx context.Context, address string, patience time.Duration) (*x509.Certificate, bool) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// Who it is does not matter here: the certificate is only looked at, the session with the brokers verifies it.
	dialer := tls.Dialer{Config: &tls.Config{ServerName: host, InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}} //nolint:gosec
	nc, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, false
	}
	defer nc.Close()
	shown := nc.(*tls.Conn).ConnectionState().PeerCertificates
	if len(shown) == 0 {
		return nil, true
	}
	return shown[0], true
}
