package server

import (
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
)

const (
	// sessionless and sessionOpen are the session epochs that ask for no session and for a new one (KIP-227).
	sessionless = -1
	sessionOpen = 0
	maxEpoch    = 1<<31 - 1
)

// fetchKey names a partition as the client does: by topic name, or by id from v13 on.
type fetchKey struct {
	topic     string
	id        kafka.TopicID
	partition int32
}

// fetchPart is a partition that a client fetches.
type fetchPart struct {
	key      fetchKey
	tp       kafka.TopicPartition // zero topic while it does not resolve
	offset   kafka.Offset
	current  kafka.LeaderEpoch
	last     kafka.LeaderEpoch
	maxBytes int
	// hw and logStart are what the client was told last; NoOffset makes sure that the next answer tells it.
	hw, logStart kafka.Offset
	served       bool // the answer being made has data of it
	failed       bool // the newest answer was an error, and the client has not named the partition since
}

// session is what the broker remembers of a consumer's fetches, so that a request names only what changed (KIP-227).
type session struct {
	id    int32
	owner sessionOwner
	byID  bool

	mu struct {
		sync.Mutex
		epoch int32 // that the next request must carry
		// order is the order of answers: what returned data goes to the back, so that no partition starves the others.
		order  []*fetchPart
		served []*fetchPart // room for turning order round
		parts  map[fetchKey]*fetchPart
	}
	// used is when the session was asked for last; the cache's lock guards it.
	used time.Time
	// size is the number of partitions that the cache has counted for it; the cache's lock guards it.
	size int
}

// nextEpoch follows e, skipping the epochs with a meaning of their own.
func nextEpoch(e int32) int32 {
	if e == maxEpoch {
		return 1
	}
	return e + 1
}

// advance takes a request's epoch: it must be the one expected, and the next one is then. It rises as soon as the request is accepted,
// answered or not, so that a repeated request is noticed.
func (s *session) advance(epoch int32, byID bool) kafka.ErrorCode {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.byID != byID:
		return kafka.FetchSessionTopicIDError
	case epoch != s.mu.epoch:
		return kafka.InvalidFetchSessionEpoch
	}
	s.mu.epoch = nextEpoch(s.mu.epoch)
	return kafka.None
}

// update takes in what a request adds, changes and forgets, and returns the number of partitions left.
func (s *session) update(parts []fetchPart, forgotten []kmsg.FetchRequestForgottenTopic) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range parts {
		p := &parts[i]
		if old := s.mu.parts[p.key]; old != nil {
			hw, start := old.hw, old.logStart
			*old = *p
			old.hw, old.logStart = hw, start
			continue
		}
		fresh := *p
		s.mu.parts[p.key] = &fresh
		s.mu.order = append(s.mu.order, &fresh)
	}
	gone := 0
	for i := range forgotten {
		f := &forgotten[i]
		for _, n := range f.Partitions {
			k := fetchKey{f.Topic, f.TopicID, n}
			if s.mu.parts[k] != nil {
				delete(s.mu.parts, k)
				gone++
			}
		}
	}
	if gone > 0 {
		kept := s.mu.order[:0]
		for _, p := range s.mu.order {
			if s.mu.parts[p.key] == p {
				kept = append(kept, p)
			}
		}
		clear(s.mu.order[len(kept):])
		s.mu.order = kept
	}
	return len(s.mu.order)
}

// snapshot appends the session's partitions to dst, resolved in img: ids that could not be resolved before may be now.
func (s *session) snapshot(dst []fetchPart, img *metadata.Image) []fetchPart {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.mu.order {
		p.resolve(img, s.byID)
		dst = append(dst, *p)
	}
	return dst
}

// tell keeps what an answer says about each partition and returns, for each, whether the answer needs to say it: data, an error, a
// diverging epoch, or a changed watermark or start. After an error everything is told again. Partitions with data go to the back.
func (s *session) tell(told []fetchNews, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved := false
	for i := range told {
		n := &told[i]
		p := s.mu.parts[n.key]
		if p == nil {
			continue // forgotten meanwhile
		}
		n.include = full || n.loud || n.bytes > 0 || n.hw != p.hw || n.logStart != p.logStart
		p.hw, p.logStart, p.failed = n.hw, n.logStart, n.failed
		if n.failed {
			p.hw = kafka.NoOffset
		}
		p.served = n.bytes > 0
		moved = moved || p.served
	}
	if moved && len(s.mu.order) > 1 {
		s.rotateLocked()
	}
}

func (s *session) rotateLocked() {
	front, back := s.mu.order[:0], s.mu.served[:0]
	for _, p := range s.mu.order {
		if p.served {
			back = append(back, p)
		} else {
			front = append(front, p)
		}
		p.served = false
	}
	s.mu.order = append(front, back...)
	clear(back)
	s.mu.served = back[:0]
}

// fetchNews is what an answer has for one partition of a session.
type fetchNews struct {
	key          fetchKey
	bytes        int
	hw, logStart kafka.Offset
	failed       bool // an error
	loud         bool // an error or a diverging epoch: always told
	include      bool // result of tell
}

// resolve finds the partition in img; an unresolved one keeps a zero topic.
func (p *fetchPart) resolve(img *metadata.Image, byID bool) kafka.ErrorCode {
	t, code := findTopic(img, p.key.topic, p.key.id, byID)
	if t == nil {
		p.tp = kafka.TopicPartition{}
		return code
	}
	if p.key.partition < 0 || int(p.key.partition) >= len(t.Partitions) {
		p.tp = kafka.TopicPartition{}
		return kafka.UnknownTopicOrPartition
	}
	p.tp = kafka.TopicPartition{Topic: t.ID, Partition: p.key.partition}
	return kafka.None
}
