//go:build linux

package hostile

import (
	"fmt"
	"net"
	"strings"
	"testing"
)

// C090: with 512 open files at most, 2,000 sockets come. What is connected works on, logs roll, and when they have gone their files are back.
func TestC090_MoreSocketsThanFiles(t *testing.T) {
	n := start(t, 512)
	segment, index := "16384", "1024"
	c := n.client("c090", map[string]*string{"segment.bytes": &segment, "index.interval.bytes": &index})
	c.roundTrip("before")
	files := n.openFiles()
	var conns []net.Conn
	for range 2000 {
		nc := dial(t, n)
		_, _ = nc.Write([]byte{0, 0}) // half a size: not idle, and no request
		conns = append(conns, nc)
	}
	for i := range 40 { // several rolls
		c.roundTrip(fmt.Sprint(i, strings.Repeat("x", 4000)))
	}
	if log := n.log.String(); !strings.Contains(log, "too_many_connections") {
		t.Errorf("the log does not say that there were too many:\n%s", log)
	}
	for _, nc := range conns {
		nc.Close()
	}
	eventually(t, "the files of closed sockets are back", func() bool { return n.openFiles() <= files+10 })
	c.roundTrip("after")
	if strings.Contains(n.log.String(), "too many open files") {
		t.Errorf("something else got no file:\n%s", n.log)
	}
}
