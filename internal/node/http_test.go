package node

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"strandline.dev/internal/sys"
)

// httpGet gets a page over a network in memory.
func httpGet(t *testing.T, n sys.Net, address, path string) (status int, body string) {
	t.Helper()
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, a string) (net.Conn, error) { return n.Dial(ctx, a) }}
	defer tr.CloseIdleConnections()
	resp, err := (&http.Client{Transport: tr}).Get("http://" + address + path)
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
