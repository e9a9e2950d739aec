package rest

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"strandline.dev/internal/metrics"
	"strandline.dev/internal/server"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// newTestDoor serves a door without a broker behind it on a network, and returns its address.
func newTestDoor(t *testing.T, n sys.Net, change ...func(*Config)) (address string, d *http.Server) {
	t.Helper()
	fine := func() error { return nil }
	m := metrics.New()
	c := Config{
		Ready: fine, Live: fine, Metrics: m.Handler(), Detail: m.DetailHandler(), Server: func() *server.Server { return nil },
		Wall: systest.NewWall(time.Unix(1_700_000_000, 0)), Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&c)
	}
	d = NewServer(c)
	l, err := n.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = d.Serve(l) }()
	return l.Addr().String(), d
}

func request(line string, headers ...string) string {
	return line + " HTTP/1.1\r\nHost: localhost\r\n" + strings.Join(append(headers, ""), "\r\n") + "\r\n"
}

func post(body string, headers ...string) string {
	return request("POST /v1/topics", append(headers, "Content-Type: application/json", fmt.Sprintf("Content-Length: %d", len(body)))...) + body
}

func bomb() string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(make([]byte, 64<<20))
	_ = z.Close()
	return b.String()
}

// chunks is a body of n bytes without a length.
func chunks(n int) string {
	const piece = 64 << 10
	return strings.Repeat(fmt.Sprintf("%x\r\n%s\r\n", piece, strings.Repeat(" ", piece)), n/piece) + "0\r\n\r\n"
}

// maliciousRequests are those of the list of malicious requests that one exchange of bytes shows. The rest of the list is in TestHostileHTTP as well.
func maliciousRequests() []malicious {
	many := make([]string, 10_000)
	for i := range many {
		many[i] = "A: b"
	}
	return []malicious{
		{"H1 large header", request("GET /livez", "A: "+strings.Repeat("a", headerBytesMax+8<<10)), 431, ""},
		{"H2 many headers", request("GET /livez", many[:headersMax+1]...), 431, ""},
		{"H2 very many headers", request("GET /livez", many...), 431, ""},
		{"H3 a length above the limit", request("POST /v1/topics", "Content-Type: application/json", "Content-Length: 99999999999"), 413, ""},
		{"H3 no length", request("POST /v1/topics", "Content-Type: application/json", "Transfer-Encoding: chunked") + chunks(bodyBytesMax+1<<20), 413, ""},
		{"H5 two lengths", request("POST /v1/topics", "Content-Length: 1", "Content-Length: 2") + "{}", 400, ""},
		{"H5 length and chunks", request("POST /v1/topics", "Content-Length: 5", "Transfer-Encoding: chunked, identity") + "0\r\n\r\n", 501, ""},
		{"H6 not JSON", post(`{"name":`), 400, ""},
		{"H7 no content type", request("POST /v1/topics", "Content-Length: 2") + "{}", 415, ""},
		{"H7 a form", request("POST /v1/topics", "Content-Type: application/x-www-form-urlencoded", "Content-Length: 2") + "{}", 415, ""},
		{"H7 another charset", request("POST /v1/topics", "Content-Type: application/json; charset=latin1", "Content-Length: 2") + "{}", 415, ""},
		{"H8 not UTF-8", post("{\"name\":\"\xff\"}"), 400, ""},
		{"H8 a header not UTF-8", request("GET /livez", "A: \xff"), 400, ""},
		{"H9 up", request("GET /v1/topics/..%2f..%2fetc%2fpasswd/x"), 404, "root:"},
		{"H9 up, plainly", request("GET /v1/../livez"), 404, ""},
		{"H9 zero", request("GET /v1/topics/%00"), 400, ""},
		{"H9 two slashes", request("GET //livez"), 404, ""},
		{"H9 long", request("GET /" + strings.Repeat("a", 8<<10)), 400, ""},
		{"H10 unknown method", request("BREW /livez"), 405, ""},
		{"H10 another method", request("DELETE /metrics"), 405, ""},
		{"H10 the method in a header", request("GET /v1/topics", "X-HTTP-Method-Override: POST"), 503, ""},
		{"H13 another site", post(`{"name":"a"}`, "Origin: https://evil.example"), 403, ""},
		{"H13 another site, by the browser's word", post(`{"name":"a"}`, "Sec-Fetch-Site: cross-site"), 403, ""},
		{"H13 no permission for others", request("OPTIONS /v1/topics", "Origin: https://evil.example", "Access-Control-Request-Method: POST"), 405, "Access-Control-Allow"},
		{"H14 another name", "GET /v1/topics HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, ""},
		{"H14 an address", "GET /v1/topics HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n", 503, ""},
		{"H16 a bomb", post(bomb(), "Content-Encoding: gzip"), 413, ""},
		{"H16 an unknown encoding", post("{}", "Content-Encoding: br"), 415, ""},
		{"H18 HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, ""},
		{"H19 a split answer", request("GET /v1/topics/a%0d%0aSet-Cookie:%20a=b"), 503, "\r\nSet-Cookie"},
		{"H21 a range", request("GET /livez", "Range: bytes=0-1,2-3,0-999999999999"), 200, ""},
		{"H21 an unknown expectation", request("POST /v1/topics", "Expect: wonders", "Content-Length: 2", "Content-Type: application/json") + "{}", 417, ""},
		{"H22 pprof", request("GET /debug/pprof/"), 404, "goroutine"},
		{"H22 variables", request("GET /debug/vars"), 404, "memstats"},
		{"H24 what was sent is not repeated", post(`{"name":"secret-payload","x":` + "\x01}"), 400, "secret-payload"},
	}
}

// malicious is a request and the answer it must get.
type malicious struct {
	name, send string
	status     int
	without    string // must not be in the answer
}

// TestHostileHTTP is the list of malicious requests, H1 to H25, by name (there is no H23). After each the door must be open to others.
func TestHostileHTTP(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range maliciousRequests() {
		seen[strings.Fields(c.name)[0]] = true
		t.Run(c.name, func(t *testing.T) {
			n := sys.Real().Net
			address, d := newTestDoor(t, n)
			defer d.Close()
			status, text := exchange(t, n, address, c.send)
			if status != c.status || c.without != "" && strings.Contains(text, c.without) {
				t.Errorf("status %d, want %d:\n%s", status, c.status, text)
			}
			if status, _ := exchange(t, n, address, request("GET /livez")); status != 200 {
				t.Errorf("the door is shut: %d", status)
			}
		})
	}
	for _, c := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"H4 slow requests end", testSlowRequests},
		{"H6 H8 H15 bodies of publishes", testBodiesThatAreRefused},
		{"H11 no proof, or a bad one", testNoProof},
		{"H12 who may read may not delete", testReaderDeletes},
		{"H17 connections are limited", testConnectionsAreLimited},
		{"H18 no HTTP/2", testNoHTTP2},
		{"H20 long waits are shortened", testLongWaits},
		{"H22 metrics want a user", testMetricsWantAUser},
		{"H25 names in the log are escaped", testNamesInTheLog},
	} {
		for _, h := range strings.Fields(c.name) {
			seen[h] = true
		}
		t.Run(c.name, c.run)
	}
	for i := 1; i <= 25; i++ {
		if h := fmt.Sprintf("H%d", i); !seen[h] && i != 23 {
			t.Errorf("%s is not in the table", h)
		}
	}
}

// exchange sends bytes over a connection of its own and reads one answer.
func exchange(t *testing.T, n sys.Net, address, send string) (int, string) {
	t.Helper()
	c, err := n.Dial(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second)) // so that a door that hangs fails the test
	go func() { _, _ = io.WriteString(c, send) }()
	return readAnswer(t, c)
}

func readAnswer(t *testing.T, c net.Conn) (int, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text strings.Builder
	_ = resp.Header.Write(&text)
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, "\r\n" + text.String() + string(b)
}

// testSlowRequests: headers that do not end, and a body that does not come, end after their time.
func testSlowRequests(t *testing.T) {
	for _, c := range []struct {
		name, send string
		status     int // 0: closed without an answer
		after      time.Duration
	}{
		{"headers", "GET /livez HTTP/1.1\r\nHost: localhost\r\nA: ", 0, headerTimeMax},
		{"body", request("POST /v1/topics", "Content-Type: application/json", "Content-Length: 100") + "{", 408, requestTimeMax},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := systest.NewNet().Host("127.0.0.1")
			address, d := newTestDoor(t, n)
			conn, err := n.Dial(t.Context(), address)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			if _, err := io.WriteString(conn, c.send); err != nil {
				t.Fatal(err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if (err == nil) != (c.status != 0) || err == nil && (resp.StatusCode != c.status || !resp.Close) {
				t.Errorf("%s: %v %v", c.name, resp, err)
			}
			if took := time.Since(began); took < c.after || took > c.after+time.Second {
				t.Errorf("%s: ended after %v, want %v", c.name, took, c.after)
			}
			_ = conn.Close()
			_ = d.Close()
			synctest.Wait()
		})
	}
}

// testConnectionsAreLimited: one more than allowed is closed, and one that ends makes room.
func testConnectionsAreLimited(t *testing.T) {
	d := &door{}
	first := &closable{}
	d.counted(first, http.StateNew)
	for range connectionsMax - 1 {
		d.counted(&closable{}, http.StateNew)
	}
	above, next := &closable{}, &closable{}
	d.counted(above, http.StateNew)
	if !above.closed || first.closed {
		t.Error("the connection above the limit must be closed, and no other")
	}
	d.counted(above, http.StateClosed)
	d.counted(first, http.StateClosed)
	if d.counted(next, http.StateNew); next.closed {
		t.Error("there is room for one")
	}
}

// closable is a connection that is only closed.
type closable struct {
	net.Conn
	closed bool
}

// Close remembers that it was called.
func (c *closable) Close() error { c.closed = true; return nil }

// TestI14_BodiesInWorkAreLimited: bodies of all requests together stay below their limit, and what one held is free afterwards.
func TestI14_BodiesInWorkAreLimited(t *testing.T) {
	d := &door{cfg: Config{Log: slog.New(slog.DiscardHandler)}}
	body := func() *http.Request {
		r, _ := http.NewRequest("POST", "/v1/topics", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = -1
		return r
	}
	var all []*held
	for range bodiesBytesMax / bodyBytesMax {
		h, p := d.hold(nil, body())
		if p != nil {
			t.Fatal(p)
		}
		all = append(all, h)
	}
	if _, p := d.hold(nil, body()); p == nil || p.Status != 429 || !p.Retriable {
		t.Errorf("one more: %+v", p)
	}
	for _, h := range all {
		h.free()
	}
	if left := d.bodies.Load(); left != 0 {
		t.Errorf("%d bytes are still held", left)
	}
}

// testLongWaits: no wait is longer than waitMax, whatever is asked.
func testLongWaits(t *testing.T) {
	for text, want := range map[string]time.Duration{"1": time.Millisecond, "1000000000": waitMax, "9223372036854775807": waitMax} {
		r, _ := http.NewRequest("GET", "/x?waitMs="+text, nil)
		r.SetPathValue("partition", "0")
		if q, err := readWanted(r); err != nil || q.wait != want {
			t.Errorf("waitMs=%s: %v %v", text, q.wait, err)
		}
	}
	for _, bad := range []string{"waitMs=-1", "fromOffset=1e20", "fromOffset=-1", "maxRecords=0", "maxRecords=99999999999999999999", "offset=1", "waitMs=1&waitMs=2"} {
		r, _ := http.NewRequest("GET", "/x?"+bad, nil)
		r.SetPathValue("partition", "0")
		name, _, _ := strings.Cut(bad, "=")
		if _, err := readWanted(r); err == nil || !strings.Contains(err.Error(), "query."+name) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
