package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

// flakyListener fails its first accepts, as a process without free file descriptors does.
type flakyListener struct {
	net.Listener
	failures atomic.Int32
}

func (l *flakyListener) Accept() (net.Conn, error) {
	if l.failures.Add(-1) >= 0 {
		return nil, errors.New("too many open files")
	}
	return l.Listener.Accept()
}

func TestAccept_FailuresAreRetried(t *testing.T) {
	l := &flakyListener{Listener: listenLoopback(t, "127.0.0.1:0")}
	l.failures.Store(3)
	b := newTestBroker(t, testOptions{listener: func() net.Listener { return l }})
	ask[*kmsg.MetadataResponse](b.dial(), newMetadata(12))
	if !strings.Contains(b.log.String(), "too many open files") {
		t.Error("failed accepts leave no log line")
	}
}

// A stop does not wait for ever: what is parked when the bound has passed is closed.
func TestStop_IsBounded(t *testing.T) {
	b := newTestBroker(t, testOptions{limits: Limits{Drain: 30 * time.Millisecond}})
	c := b.dial()
	open := b.control.shut()
	defer open()
	c.send(newCreate("never", 1))
	eventually(t, "the creation waits", func() bool { return b.control.waiting.Load() == 1 })
	b.stop()
	must(t, <-b.served)
	b.served = nil
	c.closed()
	eventually(t, "its work has ended", func() bool { return b.control.waiting.Load() == 0 })
}

// A connection that a stop meets before its first request still gets an answer: clients take an end before it for a wrong password, and give up.
func TestStop_FirstRequestIsAnswered(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	c, greeted := b.dial(), b.dial()
	eventually(t, "they are accepted", func() bool { return b.server.open.Load() == 2 })
	ask[*kmsg.ApiVersionsResponse](greeted, kmsg.NewPtrApiVersionsRequest()) // how every client begins: its first request is the next one
	b.stop()
	eventually(t, "nobody is accepted any more", func() bool {
		nc, err := net.Dial("tcp", b.addr)
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
	ask[*kmsg.MetadataResponse](greeted, newMetadata(12))
	ask[*kmsg.MetadataResponse](c, newMetadata(12))
	must(t, <-b.served)
	b.served = nil
	c.closed()
	greeted.closed()
}

func TestAdvertise_BadAddressIsAnError(t *testing.T) {
	b := newTestBroker(t, testOptions{})
	for _, bad := range []string{"nohost", ":9092", "host:", "host:0", "host:99999", "host:http"} {
		err := b.server.Serve(context.Background(), Listener{Name: "bad", Net: listenLoopback(t, "127.0.0.1:0"), Advertise: bad})
		if err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Whom a client is told to dial (contract section 2, `advertise`), for this node, for another one, and under dev.
func TestAdvertise_Endpoints(t *testing.T) {
	img, err := metadata.Empty().Apply(1, []metadata.Record{
		metadata.BrokerRecord{Node: 1, Epoch: 1, Listeners: []metadata.Listener{{Name: "plain", Host: "one.lan", Port: 9092}, {Name: "other", Host: "one.wan", Port: 19092}}},
		metadata.BrokerRecord{Node: 2, Epoch: 1, Listeners: []metadata.Listener{{Name: "plain", Host: "two.lan", Port: 9102}}},
		metadata.BrokerRecord{Node: 4, Epoch: 1, Listeners: []metadata.Listener{{Name: "plain", Host: "::", Port: 9392}}},
	})
	must(t, err)
	dialled, http := netip.MustParseAddrPort("127.0.0.5:9092"), netip.MustParseAddrPort("127.0.0.5:8080")
	for _, one := range []struct {
		name string
		dev  bool
		node kafka.NodeID
		call Call
		want Endpoint
		ok   bool
	}{
		{"self, auto", false, 1, Call{Listener: "plain", Local: dialled}, Endpoint{"127.0.0.5", 9092}, true},
		{"self, advertised", false, 1, Call{Listener: "plain", Local: dialled, Advertise: Endpoint{"pub", 1}}, Endpoint{"pub", 1}, true},
		{"other node", false, 2, Call{Listener: "plain", Local: dialled}, Endpoint{"two.lan", 9102}, true},
		{"other node under dev", true, 2, Call{Listener: "plain", Local: dialled}, Endpoint{"127.0.0.5", 9102}, true},
		{"other node without that listener", false, 2, Call{Listener: "other", Local: dialled}, Endpoint{}, false},
		{"unknown node", false, 3, Call{Listener: "plain"}, Endpoint{}, false},
		{"REST, self", false, 1, Call{}, Endpoint{"one.lan", 9092}, true},
		{"REST, other node", false, 2, Call{}, Endpoint{"two.lan", 9102}, true},
		{"HTTP dialled, self", false, 1, Call{Local: http}, Endpoint{"one.lan", 9092}, true},
		{"HTTP dialled, other node", false, 2, Call{Local: http}, Endpoint{"two.lan", 9102}, true},
		{"HTTP dialled, self under dev", true, 1, Call{Local: http}, Endpoint{"127.0.0.5", 9092}, true},
		{"HTTP dialled, self on every address", false, 4, Call{Local: http}, Endpoint{"127.0.0.5", 9392}, true},
	} {
		s := &Server{cfg: Config{Node: 1, Dev: one.dev}}
		if one.node == 4 {
			s.cfg.Node = 4
		}
		if got, ok := s.Endpoint(img, one.node, &one.call); got != one.want || ok != one.ok {
			t.Errorf("%s: %v %v, want %v %v", one.name, got, ok, one.want, one.ok)
		}
	}
}
