package main

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// TestAMuteBrokerIsNotTheOnlyOneAsked: one of the brokers takes connections and questions and answers none, as a stopped process does. Whichever is
// asked first, a command is answered within its time by the other one.
func TestAMuteBrokerIsNotTheOnlyOneAsked(t *testing.T) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mute.Close() }()
	var asked atomic.Int32
	go func() {
		for {
			nc, err := mute.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = nc.Close() }()
				for b := make([]byte, 1024); ; asked.Add(1) {
					if _, err := nc.Read(b); err != nil {
						return
					}
				}
			}()
		}
	}()
	c := &nodeCommand{t: t, dir: t.TempDir()}
	c.start()
	defer c.stop()
	const rounds = 40 // which one is asked first is chance
	for i := 0; asked.Load() == 0; i++ {
		if i == rounds {
			t.Fatal("the mute one was never asked")
		}
		if code, text := runCommand(c.dir, mute.Addr().String()+","+c.n.KafkaAddresses()[0], "", "topic", "list", "-X", "timeout=5s"); code != 0 {
			t.Fatalf("exit %d: %s", code, text)
		}
	}
	if code, text := runCommand(c.dir, mute.Addr().String()+","+c.n.KafkaAddresses()[0], "", "cluster", "health", "-X", "timeout=5s"); code != 0 || !strings.Contains(text, "1 of 1 nodes up") {
		t.Errorf("exit %d: %s", code, text)
	}
}
