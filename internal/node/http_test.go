package node

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// httpGet gets a page over a network in memory.
func httpGet(t *testing.T, n sys.Net, address, path string) (status int, body string) {
	t.Helper()
	return httpDo(t, n, http.MethodGet, "http://"+address+path, "")
}

// httpDo sends a request of JSON.
func httpDo(t *testing.T, n sys.Net, method, url, body string) (status int, answer string) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, a string) (net.Conn, error) { return n.Dial(ctx, a) }}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestR128_WhatHangsOnHTTPStopsNoNativeClient: hundreds of HTTP clients stop in the middle of a head, of a body, or before they read their answer;
// clients of the Kafka port publish and commit as before, also when the HTTP port is gone.
func TestR128_WhatHangsOnHTTPStopsNoNativeClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startFullNode(t, systest.NewFS(1))
		if code := n.create("t"); code != kafka.None {
			t.Fatalf("create: %v", code)
		}
		for n.commit("t", 1) != kafka.None { // the topic of the groups is made by the first
			time.Sleep(time.Second)
		}
		half := []string{
			"POST /v1/topics/t/records HTTP/1.1\r\nHost: n",
			"POST /v1/topics/t/records HTTP/1.1\r\nHost: n\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
			"GET /v1/topics/t/partitions/0/records?waitMs=30000 HTTP/1.1\r\nHost: n\r\n\r\n",
		}
		for i := range 300 {
			nc, err := n.machine.Net.Dial(t.Context(), "localhost:8080")
			if err != nil {
				t.Fatal(err)
			}
			defer nc.Close()
			if _, err := nc.Write([]byte(half[i%len(half)])); err != nil {
				t.Fatal(err)
			}
		}
		works := func(when string) {
			t.Helper()
			if code, why := n.publish("t", 100); code != kafka.None {
				t.Errorf("%s: publish: %v %s", when, code, why)
			}
			if code := n.commit("t", 1); code != kafka.None {
				t.Errorf("%s: commit: %v", when, code)
			}
		}
		began := time.Now()
		works("while they hang")
		if took := time.Since(began); took > time.Second {
			t.Errorf("a publish and a commit took %v", took)
		}
		if err := n.node.http.Close(); err != nil {
			t.Fatal(err)
		}
		works("without the port")
		n.stop()
	})
}
