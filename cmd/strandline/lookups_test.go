package main

import (
	"encoding/binary"
	"io"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/group"
	"strandline.dev/internal/wire"
)

// failingLookups stands between clients and a broker: it passes on what they say, and answers itself, with errors, the look-ups that are to fail.
type failingLookups struct {
	broker string
	fail   atomic.Pointer[func(kmsg.Request) kmsg.Response] // nil, or an answer of nil: the broker answers
}

// newFailingLookups starts a broker with that in front of it, and returns also the address that clients use.
func newFailingLookups(t *testing.T) (f *failingLookups, address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	f = &failingLookups{broker: newTestNode(t, map[string]string{"listeners.0.advertise": l.Addr().String()})}
	go func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			go f.serve(nc)
		}
	}()
	return f, l.Addr().String()
}

// serve answers the requests of one connection in order.
func (f *failingLookups) serve(nc net.Conn) {
	defer nc.Close()
	upstream, err := net.Dial("tcp", f.broker)
	if err != nil {
		return
	}
	defer upstream.Close()
	for {
		asked, err := readFrame(nc)
		if err != nil {
			return
		}
		answer := f.refusal(asked[4:])
		if answer == nil {
			if _, err := upstream.Write(asked); err != nil {
				return
			}
			if answer, err = readFrame(upstream); err != nil {
				return
			}
		}
		if _, err := nc.Write(answer); err != nil {
			return
		}
	}
}

// readFrame reads a frame with the size before it.
func readFrame(r io.Reader) ([]byte, error) {
	frame := make([]byte, 4)
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

// refusal is the frame that answers a request which is to fail; nil for others.
func (f *failingLookups) refusal(frame []byte) []byte {
	fail := f.fail.Load()
	h, body, err := wire.ParseRequestHeader(frame)
	req := kmsg.RequestForKey(h.Key)
	if fail == nil || err != nil || req == nil {
		return nil
	}
	req.SetVersion(h.Version)
	if wire.DecodeRequest(req, body) != nil {
		return nil
	}
	resp := (*fail)(req)
	if resp == nil {
		return nil
	}
	resp.SetVersion(h.Version)
	out := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(h.CorrelationID))
	if req.IsFlexible() {
		out = append(out, 0)
	}
	out = resp.AppendTo(out)
	binary.BigEndian.PutUint32(out, uint32(len(out)-4))
	return out
}

// lookupFailures are the look-ups, each with its refusal. The refusals carry offsets of 0, which nobody is to believe.
var lookupFailures = map[string]func(kmsg.Request) kmsg.Response{
	"who coordinates the group": func(req kmsg.Request) kmsg.Response {
		r, ok := req.(*kmsg.FindCoordinatorRequest)
		if !ok {
			return nil
		}
		resp := kmsg.NewPtrFindCoordinatorResponse()
		resp.ErrorCode = kerr.UnknownServerError.Code
		for _, key := range r.CoordinatorKeys {
			resp.Coordinators = append(resp.Coordinators, kmsg.FindCoordinatorResponseCoordinator{Key: key, ErrorCode: kerr.UnknownServerError.Code})
		}
		return resp
	},
	"where the group is": func(req kmsg.Request) kmsg.Response {
		r, ok := req.(*kmsg.OffsetFetchRequest)
		if !ok {
			return nil
		}
		resp := kmsg.NewPtrOffsetFetchResponse()
		for _, g := range r.Groups {
			resp.Groups = append(resp.Groups, kmsg.OffsetFetchResponseGroup{Group: g.Group, ErrorCode: kerr.UnknownServerError.Code})
		}
		return resp
	},
	"what the group has not read": func(req kmsg.Request) kmsg.Response {
		r, ok := req.(*kmsg.OffsetFetchRequest)
		if !ok {
			return nil
		}
		if _, asked := wire.Tagged(&r.UnknownTags, group.ReportType); !asked {
			return nil
		}
		resp := kmsg.NewPtrOffsetFetchResponse()
		resp.Groups = append(resp.Groups, kmsg.OffsetFetchResponseGroup{Group: r.Groups[0].Group, ErrorCode: kerr.UnknownServerError.Code})
		return resp
	},
	"where a partition begins": refusedOffsets(func(ts int64) bool { return ts == -2 }),
	"where a partition ends":   refusedOffsets(func(ts int64) bool { return ts == -1 }),
	"which offset a time has":  refusedOffsets(func(ts int64) bool { return ts >= 0 }),
}

// refusedOffsets refuses to look up the offsets of some timestamps.
func refusedOffsets(which func(timestamp int64) bool) func(kmsg.Request) kmsg.Response {
	return func(req kmsg.Request) kmsg.Response {
		r, ok := req.(*kmsg.ListOffsetsRequest)
		if !ok || len(r.Topics) == 0 || !which(r.Topics[0].Partitions[0].Timestamp) {
			return nil
		}
		resp := kmsg.NewPtrListOffsetsResponse()
		for _, t := range r.Topics {
			rt := kmsg.ListOffsetsResponseTopic{Topic: t.Topic}
			for _, p := range t.Partitions {
				rt.Partitions = append(rt.Partitions, kmsg.ListOffsetsResponseTopicPartition{Partition: p.Partition, ErrorCode: kerr.UnknownServerError.Code})
			}
			resp.Topics = append(resp.Topics, rt)
		}
		return resp
	}
}

// aZero finds an offset or a lag of 0 in an answer.
var aZero = regexp.MustCompile(`"(committed|end|lag|from|to)":0\b`)

// TestC062_NoCommandBelievesAFailedLookup: a group whose partition begins at 1, which has committed 2 of 4, so that no number about it is 0. When any one
// look-up fails, a command that needs it says so and fails, or leaves that number out; none shows a 0.
func TestC062_NoCommandBelievesAFailedLookup(t *testing.T) {
	f, address := newFailingLookups(t)
	readyForLookups(t, address)
	dir := t.TempDir()
	commands := map[string][]string{"describe": {"group", "describe", "billing", "-o", "json"}}
	for name, to := range map[string]string{"start": "start", "end": "end", "time": "@1767225602000", "move": "+1", "offset": "3"} {
		commands[name] = []string{"group", "seek", "billing", "--to", to, "-o", "json"}
	}
	for name, want := range map[string]string{
		"describe": `"committed":2,"end":4,"lag":2,`, "start": `"from":2,"to":1,`, "end": `"from":2,"to":4,`, "time": `"from":2,"to":3,`,
		"move": `"from":2,"to":3,`, "offset": `"from":2,"to":3,`,
	} {
		if code, text := runCommand(dir, address, "", commands[name]...); code != 0 || !strings.Contains(text, want) || aZero.MatchString(text) {
			t.Fatalf("%v with nothing failing: exit %d, %s, want %s", commands[name], code, text, want)
		}
	}
	needs := map[string][]string{
		"who coordinates the group":   {"describe", "start", "end", "time", "move", "offset"},
		"where the group is":          {"describe", "start", "end", "time", "move", "offset"},
		"what the group has not read": {"describe", "start", "end", "time", "move", "offset"},
		"where a partition begins":    {"start", "end", "time", "move", "offset"},
		"where a partition ends":      {"start", "end", "time", "move", "offset"},
		"which offset a time has":     {"time"},
	}
	for what, fail := range lookupFailures {
		f.fail.Store(&fail)
		for name, args := range commands {
			code, text := runCommand(dir, address, "", args...)
			needed := slices.Contains(needs[what], name)
			if needed && (code != 1 || !strings.Contains(text, "UNKNOWN_SERVER_ERROR")) || !needed && code != 0 || aZero.MatchString(text) {
				t.Errorf("%v when it cannot be found out %s: exit %d, %s", args, what, code, text)
			}
		}
	}
}

// readyForLookups makes that group.
func readyForLookups(t *testing.T, address string) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	if _, err := admin.CreateTopic(t.Context(), 1, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		r := &kgo.Record{Topic: "orders", Value: []byte("x"), Timestamp: time.UnixMilli(1767225599000 + 1000*int64(i))}
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	var first, committed kadm.Offsets
	first.AddOffset("orders", 0, 1, -1)
	committed.AddOffset("orders", 0, 2, -1)
	if _, err := admin.DeleteRecords(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if err := admin.CommitAllOffsets(t.Context(), "billing", committed); err != nil {
		t.Fatal(err)
	}
}
