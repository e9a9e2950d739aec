package rest

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/server"
	"strandline.dev/internal/wire"
)

// clientID is how requests of this door are named in logs and groups.
const clientID = "rest"

// broker is the dispatcher, or why there is none yet.
func (d *door) broker() (*server.Server, error) {
	if s := d.cfg.Server(); s != nil {
		return s, nil
	}
	p := failed(kafka.BrokerNotAvailable, nil)
	p.Detail = "the node is starting"
	if err := d.cfg.Ready(); err != nil {
		p.Detail = "the node does not serve yet: " + err.Error()
	}
	return nil, p
}

// callOf is a request of the protocol in the newest version, in the name of who sent the HTTP request.
func callOf(ctx context.Context, req kmsg.Request) *server.Call {
	if req.GetVersion() == 0 {
		api, _ := wire.Lookup(req.Key())
		req.SetVersion(api.Max)
	}
	who := callerOf(ctx)
	return &server.Call{Principal: who.principal, Request: req, ClientID: clientID, Peer: who.peer, Local: who.local, Received: time.Now()}
}

// ask has a request carried out by a node and waits for the answer. Errors are problems.
func ask[R kmsg.Response](ctx context.Context, d *door, node kafka.NodeID, req kmsg.Request) (R, error) {
	var none R
	s, err := d.broker()
	if err != nil {
		return none, err
	}
	resp, err := s.Ask(ctx, node, callOf(ctx, req))
	if err != nil {
		return none, unanswered(err)
	}
	r, ok := resp.(R)
	if !ok {
		return none, fmt.Errorf("the answer to %T is %T", req, resp)
	}
	return r, nil
}

// askHere is ask of this node.
func askHere[R kmsg.Response](ctx context.Context, d *door, req kmsg.Request) (R, error) {
	return ask[R](ctx, d, d.cfg.Node, req)
}

// query reads the parameters of a route that huma does not read: each once, none but the allowed.
func query(r *http.Request, allowed ...string) (map[string]string, error) {
	out := map[string]string{}
	for name, values := range r.URL.Query() {
		known := false
		for _, a := range allowed {
			known = known || a == name
		}
		switch {
		case !known:
			return nil, invalid("query."+name, "unknown query parameter")
		case len(values) > 1:
			return nil, invalid("query."+name, "is given more than once")
		}
		out[name] = values[0]
	}
	return out, nil
}
