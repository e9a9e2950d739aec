package audit

import (
	"strings"
	"time"

	"strandline.dev/internal/auth"
)

// sameness is what makes two events equal.
type sameness struct{ what, principal, host, client, api, resource, outcome string }

// folding gathers equal events into one entry with a count. It is not safe for concurrent use.
//
// Whoever is denied chooses most of what makes two events differ, so the bytes of different entries come out of a bucket: a burst is named in full,
// and a flood, however long and however varied, grows the trail by floodBytesPerSecond.
type folding struct {
	since time.Time // of the oldest
	open  map[sameness]*Entry
	order []*Entry
	spent int       // bytes that the bucket is short of floodBytes
	at    time.Time // until when it was filled
}

// add counts an event. When there are too many different ones, the rest of a kind is counted together: none is left out.
func (f *folding) add(e *Entry, now time.Time) {
	if f.open == nil {
		f.open, f.since = map[sameness]*Entry{}, now
	}
	f.fill(now)
	same := sameness{e.What, e.Principal, hostOf(e.Peer), e.Client, e.API, e.Resource, e.Outcome}
	was := f.open[same]
	if was == nil && (len(f.open) >= foldMax || f.spent+e.size() > floodBytes) {
		same = sameness{what: e.What}
		rest := Entry{What: e.What, Principal: "several", Peer: "several", Resource: "several", At: e.At, Until: e.Until, Outcome: "too many different ones to name each"}
		e, was = &rest, f.open[same]
	}
	if was != nil {
		was.Count, was.Until = was.Count+1, e.Until
		return
	}
	e.Count = 1
	f.open[same] = e
	f.order = append(f.order, e)
	f.spent = min(f.spent+e.size(), floodBytes)
}

// fill puts into the bucket what came since it was filled last, in whole seconds.
func (f *folding) fill(now time.Time) {
	if f.at.IsZero() || now.Before(f.at) {
		f.at = now
	}
	seconds := int(min(now.Sub(f.at)/time.Second, floodBytes))
	f.at = f.at.Add(time.Duration(seconds) * time.Second)
	f.spent = max(0, f.spent-seconds*floodBytesPerSecond)
}

// due says whether the time of folding is over. It is longer while the bucket is less than half full: what is denied again and again then takes few
// entries, and the rest of a flood one in that time.
func (f *folding) due(now time.Time) bool {
	every := foldEvery
	if f.spent > floodBytes/2 {
		every = foldFlooded
	}
	return len(f.order) > 0 && now.Sub(f.since) >= every
}

// take returns the entries and begins anew; the bucket stays as it is.
func (f *folding) take() []*Entry {
	out := f.order
	f.open, f.order = nil, nil
	return out
}

// hostOf is an address without its port: a client that comes again has another one.
func hostOf(peer string) string {
	if i := strings.LastIndexByte(peer, ':'); i > 0 {
		return peer[:i]
	}
	return peer
}

// entryOf is the entry of an event.
func entryOf(ev auth.Event, at time.Time) *Entry {
	e := &Entry{
		At: at, Until: at, Count: 1, What: ev.What, Principal: ev.Principal.String(), Peer: ev.Peer, Client: ev.Client, API: ev.API,
		Resource: ev.Resource, Before: ev.Before, After: ev.After, Outcome: ev.Outcome,
	}
	e.cut()
	return e
}
