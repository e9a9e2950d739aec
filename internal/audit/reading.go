package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/kafka"
)

// Outcomes are what can become of what an entry is about.
var Outcomes = []string{"done", "failed", "denied", "unknown"}

// Query says which lines of the trail are asked for; empty fields ask for all.
type Query struct {
	From, To                     time.Time
	Principal, Resource, Outcome string
	// ChainsOnly keeps no lines: the chains alone are verified.
	ChainsOnly bool
	// Most bounds the entries that are held at once, some 500 bytes each.
	Most int
}

// wants says whether a line is asked for.
func (q *Query) wants(l *Line) bool {
	return !l.Until.Before(q.From) && !l.At.After(q.To) && (q.Principal == "" || q.Principal == l.Principal) &&
		(q.Resource == "" || strings.Contains(l.Resource, q.Resource)) && (q.Outcome == "" || q.Outcome == l.Outcome)
}

// Line is what happened, with what became of it.
type Line struct {
	At        time.Time `json:"at"`
	Until     time.Time `json:"until"`
	Count     uint32    `json:"count"`
	What      string    `json:"what"`
	Principal string    `json:"principal"`
	Peer      string    `json:"peer"`
	Client    string    `json:"client,omitempty"`
	API       string    `json:"api"`
	Resource  string    `json:"resource,omitempty"`
	Before    string    `json:"before,omitempty"`
	After     string    `json:"after,omitempty"`
	Outcome   string    `json:"outcome" enum:"done,failed,denied,unknown"`
	Why       string    `json:"why,omitempty"`
	Node      int32     `json:"node"`
}

// ChainState is what was read of one chain.
type ChainState struct {
	Chain   int32  `json:"chain"`
	Entries int    `json:"entries"`
	Next    uint64 `json:"next"`
	// LastHash is "" where no entry is kept that could tell it.
	LastHash string `json:"lastHash,omitempty"`
	Broken   int    `json:"broken"`
}

// numbered names what one process saw.
type numbered struct {
	run    kafka.ID
	number uint64
}

// chainRead is a chain that is being read.
type chainRead struct {
	chain   Chain
	entries int
	broken  int
}

// Reading gathers entries from all chains. One that was delivered twice counts once.
type Reading struct {
	query  Query
	chains map[int32]*chainRead
	seen   map[numbered]Entry
	ends   map[numbered]Entry // of changes, by what they end
	broken []string           // the first breaks
	breaks int
}

// breaksShown is how many breaks of chains are named.
const breaksShown = 10

// NewReading begins to read these chains.
func NewReading(q Query, chains []int32) *Reading {
	r := &Reading{query: q, chains: map[int32]*chainRead{}, seen: map[numbered]Entry{}, ends: map[numbered]Entry{}}
	for _, c := range chains {
		r.chains[c] = &chainRead{}
	}
	return r
}

// Take verifies one entry, and keeps what was asked for. Entries of a chain are taken in the order of their offsets.
func (r *Reading) Take(chain int32, offset int64, value []byte) error {
	c := r.chains[chain]
	e, err := c.chain.Follow(offset, value)
	if c.entries++; err != nil {
		c.broken++
		if r.breaks++; r.breaks <= breaksShown {
			r.broken = append(r.broken, fmt.Sprintf("chain %d: %v", chain, err))
		}
	}
	if r.query.ChainsOnly || e.Number == 0 {
		return nil
	}
	switch line := lineOf(&e); {
	case e.Of != 0:
		r.ends[numbered{e.Run, e.Of}] = e
	case e.What == Begun:
		line.Outcome = r.query.Outcome // not known before its end is read
		fallthrough
	default:
		if r.query.wants(&line) {
			r.seen[numbered{e.Run, e.Number}] = e
		}
	}
	if len(r.seen)+len(r.ends) > r.query.Most {
		return fmt.Errorf("%w: more than %d", ErrTooMany, r.query.Most)
	}
	return nil
}

// Next is the offset of a chain at which to read on.
func (r *Reading) Next(chain int32) int64 { return int64(r.chains[chain].chain.next) }

// Removed says that a chain now starts at an offset: what was below and is not read yet is not missed.
func (r *Reading) Removed(chain int32, below int64) { r.chains[chain].chain.Removed(below) }

// Lines joins changes with what became of them, in the order of time.
func (r *Reading) Lines() []Line {
	out := []Line{}
	for key, e := range r.seen {
		line := lineOf(&e)
		if e.What == Begun {
			end, ended := r.ends[key]
			line.What, line.Outcome, line.Why = auth.Change, "unknown", "no end of it was kept"
			if ended {
				line.Outcome, line.Why, line.Until = "done", end.Outcome, end.At
				if end.Outcome != "" {
					line.Outcome = "failed"
				}
			}
		}
		if r.query.wants(&line) {
			out = append(out, line)
		}
	}
	slices.SortFunc(out, func(x, y Line) int {
		return cmp.Or(x.At.Compare(y.At), cmp.Compare(x.Node, y.Node), cmp.Compare(x.API, y.API), cmp.Compare(x.Resource, y.Resource))
	})
	return out
}

// Chains are the states of the chains, in their order.
func (r *Reading) Chains() []ChainState {
	out := []ChainState{}
	for n, c := range r.chains {
		next, hash, known := c.chain.Head()
		state := ChainState{Chain: n, Entries: c.entries, Next: next, Broken: c.broken}
		if known {
			state.LastHash = hash.String()
		}
		out = append(out, state)
	}
	slices.SortFunc(out, func(x, y ChainState) int { return cmp.Compare(x.Chain, y.Chain) })
	return out
}

// Broken names the first places where a chain is broken, and counts them all.
func (r *Reading) Broken() (first []string, count int) { return r.broken, r.breaks }

func lineOf(e *Entry) Line {
	return Line{
		At: e.At, Until: e.Until, Count: e.Count, What: e.What, Principal: e.Principal, Peer: e.Peer, Client: e.Client, API: e.API,
		Resource: e.Resource, Before: e.Before, After: e.After, Outcome: "denied", Why: e.Outcome, Node: int32(e.Node),
	}
}
