package server

import (
	"net"
	"net/netip"
	"time"

	"strandline.dev/internal/metadata"
)

// connectDelay counts a connection and returns for how long it is not served, by the connection_creation_rate of its address.
func (s *Server) connectDelay(nc net.Conn) time.Duration {
	at, err := netip.ParseAddrPort(peerName(nc))
	if err != nil {
		return 0 // a socket without an address
	}
	delay := s.quotas.Connect(at.Addr().Unmap().WithZone("").String(), time.Now())
	if delay > 0 {
		s.cfg.Metrics.Throttled(metadata.QuotaConnection.String(), "", "", delay)
	}
	return delay
}

// delay waits before a connection is served; false means that it ended meanwhile.
func (c *conn) delay(d time.Duration) bool {
	if d <= 0 {
		return true
	}
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		select {
		case <-over.C:
			return true
		case <-c.ctx.Done():
			return false
		case <-c.toReader:
			if c.draining.Load() {
				return false
			}
		}
	}
}
