package main

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// TestDemoBrokersEndWithAKilledDemo: where the kernel can, no broker outlives a demonstration that had no time to end them.
func TestDemoBrokersEndWithAKilledDemo(t *testing.T) {
	d := startDemo(t, t.TempDir())
	var watches []net.Conn // each breaks when its broker ends
	for _, address := range d.kafkas {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		watches = append(watches, c)
	}
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = d.wait() // killed
	for i, c := range watches {
		if err := c.SetReadDeadline(time.Now().Add(demoReadyMax)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("broker process %d outlives the demonstration", d.brokers[i])
		}
	}
}
