package main

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
)

// muteBroker takes connections and questions and answers none, as a stopped process does; asked counts what it was sent.
func muteBroker(t *testing.T) (address string, asked *atomic.Int32) {
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mute.Close() })
	asked = new(atomic.Int32)
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
	return mute.Addr().String(), asked
}

// TestAMuteBrokerIsNotTheOnlyOneAsked: one of the brokers answers nothing. Whichever is asked first, a command is answered within its time by the
// other one; a view of the cluster also where two of three answer nothing, which is when it is needed.
func TestAMuteBrokerIsNotTheOnlyOneAsked(t *testing.T) {
	mute, asked := muteBroker(t)
	second, askedToo := muteBroker(t)
	c := &nodeCommand{t: t, dir: t.TempDir()}
	c.start()
	defer c.stop()
	const rounds = 40 // which one is asked first is chance
	for i := 0; asked.Load() == 0; i++ {
		if i == rounds {
			t.Fatal("the mute one was never asked")
		}
		if code, text := runCommand(c.dir, mute+","+c.n.KafkaAddresses()[0], "", "topic", "list", "-X", "timeout=5s"); code != 0 {
			t.Fatalf("exit %d: %s", code, text)
		}
	}
	for _, named := range []string{mute + "," + c.n.KafkaAddresses()[0], mute + "," + second + "," + c.n.KafkaAddresses()[0]} {
		if code, text := runCommand(c.dir, named, "", "cluster", "health"); code != 0 || !strings.Contains(text, "1 of 1 nodes up") {
			t.Errorf("%s: exit %d: %s", named, code, text)
		}
	}
	if askedToo.Load() == 0 {
		t.Error("the second mute one was never asked")
	}
}
