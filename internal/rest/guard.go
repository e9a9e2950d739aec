package rest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// guard stands before every route: what it refuses no handler sees.
func (d *door) guard(mux *http.ServeMux) http.Handler {
	foreign := http.NewCrossOriginProtection() // H13: no cookies, and no requests that another site's page sends
	foreign.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		refuse(http.StatusForbidden, "CROSS_ORIGIN", "the request comes from a page of another site").write(w)
	}))
	inside := foreign.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { d.route(mux, w, r) }))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				if p == http.ErrAbortHandler {
					panic(p)
				}
				d.cfg.Log.Error("a handler of the HTTP door broke", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				d.writeError(w, fmt.Errorf("panic: %v", p))
			}
		}()
		if p := wrongShape(r); p != nil {
			p.write(w)
			return
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		inside.ServeHTTP(w, r)
	})
}

// wrongShape judges what every request has: its path, its headers, the name it came by.
func wrongShape(r *http.Request) *problem {
	headers := 0
	for name, values := range r.Header {
		headers += len(values)
		for _, v := range values {
			if !utf8.ValidString(v) {
				return refuse(http.StatusBadRequest, "BAD_REQUEST", fmt.Sprintf("header %q is not UTF-8", name))
			}
		}
	}
	path, longest := r.URL.EscapedPath(), pathBytesMax
	if path == "/v1/groups" || strings.HasPrefix(path, "/v1/groups/") {
		longest = groupPathBytesMax
	}
	switch {
	case headers > headersMax:
		return refuse(http.StatusRequestHeaderFieldsTooLarge, "TOO_MANY_HEADERS", fmt.Sprintf("%d headers, limit %d", headers, headersMax))
	case len(r.RequestURI) > longest:
		return refuse(http.StatusBadRequest, "BAD_REQUEST", fmt.Sprintf("path and query are longer than %d bytes", longest))
	case r.Method == http.MethodConnect || !strings.HasPrefix(path, "/"):
		return refuse(http.StatusBadRequest, "BAD_REQUEST", "the request names no path")
	case strings.Contains(r.URL.Path, "\x00") || !utf8.ValidString(r.URL.Path):
		return refuse(http.StatusBadRequest, "BAD_REQUEST", "the path is not text")
	case strings.Contains(path, "//") || dotted(r.URL.Path):
		return noRoute()
	case strings.HasPrefix(path, "/v1") && rebound(r):
		return refuse(http.StatusMisdirectedRequest, "WRONG_HOST", "this address is loopback; use localhost or an IP address in the URL, not another name (DNS rebinding)")
	}
	return nil
}

// dotted says whether a path has a segment that stands for another one, also where its slash was escaped (H9).
func dotted(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// rebound says that a request came to a loopback address by a name that anybody's DNS could have given it (H14).
func rebound(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || r.TLS != nil || !loopback(local.String()) {
		return false
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err != nil && !strings.EqualFold(host, "localhost") && !strings.HasSuffix(strings.ToLower(host), ".localhost")
}

func loopback(address string) bool {
	at, err := netip.ParseAddrPort(address)
	return err == nil && at.Addr().Unmap().IsLoopback()
}

func noRoute() *problem {
	return refuse(http.StatusNotFound, "NO_ROUTE", "no such route; GET /docs lists them")
}

// route finds the handler of a request, or says that there is none.
func (d *door) route(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	h, pattern := mux.Handler(r)
	if pattern == "" {
		lost := &headOnly{header: http.Header{}}
		h.ServeHTTP(lost, r)
		p := noRoute()
		if lost.status == http.StatusMethodNotAllowed {
			allow := lost.header.Get("Allow")
			p = refuse(http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "this route takes "+allow)
			p.headers = http.Header{"Allow": {allow}}
		}
		p.write(w)
		return
	}
	api := strings.HasPrefix(r.URL.Path, "/v1/")
	if !api && (r.TLS == nil || !strings.HasPrefix(r.URL.Path, "/metrics")) {
		mux.ServeHTTP(w, r)
		return
	}
	// H22: metrics name topics and groups, so they are for those who may describe the cluster. Without TLS nobody can prove who it is, and serve lets
	// such a port leave the machine only with --insecure.
	who, p := d.identify(r)
	if p == nil && !api {
		p = d.mayScrape(who)
	}
	if p != nil {
		p.write(w)
		return
	}
	if !api {
		mux.ServeHTTP(w, r)
		return
	}
	r = r.WithContext(who.in(r.Context()))
	held, p := d.hold(w, r)
	if p != nil {
		p.write(w)
		return
	}
	defer held.free()
	r.Body = held
	mux.ServeHTTP(w, r)
}

// headOnly keeps what a handler says of its answer.
type headOnly struct {
	header http.Header
	status int
}

func (h *headOnly) Header() http.Header         { return h.header }
func (h *headOnly) WriteHeader(status int)      { h.status = status }
func (h *headOnly) Write(b []byte) (int, error) { return len(b), nil }

// held is a request's body, read whole before anything is done with it.
type held struct {
	bytes.Reader
	b        []byte
	buffer   *bytes.Buffer
	door     *door
	reserved int64
}

var buffers = sync.Pool{New: func() any { return &bytes.Buffer{} }}

// Close implements io.Closer; the bytes stay until free.
func (*held) Close() error { return nil }

func (h *held) free() {
	h.door.bodies.Add(-h.reserved)
	if h.buffer != nil && h.buffer.Cap() <= bodyKeep {
		h.buffer.Reset()
		buffers.Put(h.buffer)
	}
}

// hold reads the body of a request within the limits (H3, H4, H7, H16).
func (d *door) hold(w http.ResponseWriter, r *http.Request) (*held, *problem) {
	h := &held{door: d}
	if r.ContentLength == 0 {
		return h, nil
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodDelete:
		return h, bodiless(r)
	}
	if p := d.wrongBody(r); p != nil {
		return nil, p
	}
	h.reserved = r.ContentLength
	encoding := strings.ToLower(r.Header.Get("Content-Encoding"))
	if h.reserved < 0 || encoding == "gzip" {
		h.reserved = bodyBytesMax
	}
	if d.bodies.Add(h.reserved) > bodiesBytesMax {
		d.bodies.Add(-h.reserved)
		p := refuse(http.StatusTooManyRequests, "BUSY", "too many bytes of requests are in work on this node; try again")
		p.Retriable, p.retryAfter = true, time.Second
		return nil, p
	}
	h.buffer = buffers.Get().(*bytes.Buffer)
	var from io.Reader = http.MaxBytesReader(w, r.Body, bodyBytesMax)
	var err error
	if encoding == "gzip" {
		if from, err = gzip.NewReader(from); err == nil {
			from = io.LimitReader(from, bodyBytesMax+1)
		}
	}
	if err == nil {
		_, err = h.buffer.ReadFrom(from)
	}
	h.b = h.buffer.Bytes()
	if p := badBody(len(h.b), err); p != nil {
		h.free()
		return nil, p
	}
	h.Reset(h.b)
	return h, nil
}

// bodiless refuses a request of a method without a body that has one: what it says there, such as the version that may be deleted, would not hold.
func bodiless(r *http.Request) *problem {
	switch n, err := io.ReadFull(r.Body, make([]byte, 1)); {
	case n > 0:
		return refuse(http.StatusBadRequest, "BAD_REQUEST", "a "+r.Method+" has no body here: what it needs is in the path and the query")
	case errors.Is(err, io.EOF):
		return nil
	default:
		return badBody(0, err)
	}
}

func badBody(size int, err error) *problem {
	var large *http.MaxBytesError
	switch {
	case size > bodyBytesMax || errors.As(err, &large):
		return refuse(http.StatusRequestEntityTooLarge, "BODY_TOO_LARGE", fmt.Sprintf("the body is larger than %d bytes", bodyBytesMax))
	case errors.Is(err, os.ErrDeadlineExceeded):
		p := refuse(http.StatusRequestTimeout, "BODY_TOO_SLOW", "the body did not arrive in time")
		p.headers = http.Header{"Connection": {"close"}}
		return p
	case err != nil:
		return refuse(http.StatusBadRequest, "BAD_REQUEST", "the body cannot be read: "+err.Error())
	}
	return nil
}

// wrongBody judges what the headers say about the body.
func (d *door) wrongBody(r *http.Request) *problem {
	kind, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	charset := strings.ToLower(params["charset"])
	encoding := strings.ToLower(r.Header.Get("Content-Encoding"))
	switch {
	case r.ContentLength > bodyBytesMax:
		return badBody(bodyBytesMax+1, nil)
	case encoding != "" && encoding != "identity" && encoding != "gzip":
		return refuse(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE", "Content-Encoding is none or gzip")
	case err != nil || kind != "application/json" && kind != "application/octet-stream" || charset != "" && charset != "utf-8":
		return refuse(http.StatusUnsupportedMediaType, "UNSUPPORTED_MEDIA_TYPE",
			"the body is application/json in UTF-8, or for one record application/octet-stream: send a Content-Type header")
	}
	r.Header.Set("Content-Type", kind)
	return nil
}
