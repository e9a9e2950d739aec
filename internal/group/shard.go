package group

import (
	"fmt"
	"time"

	"strandline.dev/internal/kafka"
)

// Config holds the settings of a shard. A value that is zero takes the default of limits.go, but for InitialDelay and
// MetadataMax: 0 is no delay, and no text.
type Config struct {
	SessionMin, SessionMax time.Duration // bounds of the session time-out that a member may ask for
	InitialDelay           time.Duration // how long an empty group waits for more members
	MaxSize                int           // members of a group
	MetadataMax            int           // bytes of the text beside an offset
	ProtocolBytesMax       int           // bytes of all protocols of a member
	RecordBytesMax         int           // bytes of the members in a group record; the log must accept batches 64 KiB larger
	OffsetRetention        time.Duration // raised to RetentionFloor

	// Of consumer groups, whose coordinator sets what members of classic groups choose.
	ConsumerSession  time.Duration // how long a member may be silent
	ConsumerInterval time.Duration // between two heartbeats of a member
	ConsumerMaxSize  int           // members of a group
	Assignors        []string      // in the order of preference: "uniform", "range"
	Migration        Migration     // of groups with members, between the protocols
}

// Moment is the time of an event on both clocks.
type Moment struct {
	Mono time.Time // monotonic: all time-outs
	Wall time.Time // stamps records; it may step, and no time-out depends on it (C049)
}

// Shard holds the groups of one partition of the progress log. It belongs to one leader epoch of that partition.
type Shard struct {
	cfg      Config
	groups   map[string]*group
	waiting  map[uint64]*member // by the token of a join or sync that waits
	timers   timers
	loaded   bool
	loadedAt Moment
	owed     int // records of the last Step that are not applied yet
	purge    []offsetRef
	purging  timer

	widths    map[kafka.TopicID]width // hard state: Apply alone writes it
	growing   []growth
	growTimer timer
}

// NewShard returns a shard to replay the log into.
func NewShard(c Config) *Shard {
	s := &Shard{cfg: c.withDefaults(), groups: map[string]*group{}, waiting: map[uint64]*member{}, widths: map[kafka.TopicID]width{}}
	s.purging.kind, s.growTimer.kind = purgeTimer, growTimer
	return s
}

// NextDeadline returns when the next Tick is due, on the monotonic clock; false when nothing waits for time.
func (s *Shard) NextDeadline() (time.Time, bool) {
	t := s.timers.first()
	if t == nil {
		return time.Time{}, false
	}
	return t.at, true
}

// step is one Step: the shard, the time, and the effects so far.
type step struct {
	*Shard
	now     Moment
	out     Effects
	kept    func(kafka.TopicID) time.Duration // of a Tick
	touched []*group                          // may have become empty of all state
	looked  int                               // offsets whose age was looked at
}

// Step decides on an event. It panics when the shell breaks the contract of the package comment: going on would build decisions on
// a state that the log does not have.
func (s *Shard) Step(ev Event, now Moment) Effects {
	if _, ok := ev.(Loaded); ok == s.loaded {
		panic(fmt.Sprintf("group: %T when loaded is %v", ev, s.loaded))
	}
	if s.owed != 0 {
		panic(fmt.Sprintf("group: %d records of the last step are not applied", s.owed))
	}
	x := &step{Shard: s, now: now}
	switch ev := ev.(type) {
	case Join:
		x.join(&ev)
	case Sync:
		x.sync(&ev)
	case Heartbeat:
		x.heartbeat(&ev)
	case Leave:
		x.leave(&ev)
	case CommitOffsets:
		x.commit(&ev)
	case FetchOffsets:
		x.fetch(&ev)
	case DescribeGroups:
		x.describe(&ev)
	case ListGroups:
		x.list(&ev)
	case DeleteGroups:
		x.deleteGroups(&ev)
	case DeleteOffsets:
		x.deleteOffsets(&ev)
	case ConsumerHeartbeat:
		x.consumerHeartbeat(&ev)
	case DescribeConsumerGroups:
		x.describeConsumers(&ev)
	case Cancel:
		x.cancel(ev.Token)
	case ListOffsets:
		x.listOffsets(&ev)
	case SeekOffsets:
		x.seek(&ev)
	case TopicsDeleted:
		x.topicsDeleted(ev.IDs)
	case TopicsWidened:
		x.topicsWidened(&ev)
	case Loaded:
		x.load()
	case Tick:
		x.kept = ev.RecordsKept
		x.tick()
	}
	for _, g := range x.touched {
		s.forgetEmpty(g)
	}
	s.owed = len(x.out.Records)
	return x.out
}

// tick lets the timers that are due act, as many as one event may.
func (x *step) tick() {
	for range timersMax {
		t := x.timers.first()
		if t == nil || t.at.After(x.now.Mono) || len(x.out.Records) >= recordsMax || x.looked >= looksMax {
			return
		}
		if t.kind.isOfConsumers() && t.group.owed > 0 {
			return // a change builds on applied records alone: the next Tick goes on
		}
		x.timers.disarm(t)
		switch t.kind {
		case sessionTimer:
			x.sessionExpired(t.group, t.member)
		case pendingTimer:
			x.pendingExpired(t.group, t.id)
		case joinTimer:
			x.joinExpired(t.group)
		case syncTimer:
			x.syncExpired(t.group)
		case expiryTimer:
			x.expire(t.group)
		case purgeTimer:
			x.purgeSome()
		case growTimer:
			x.growSome()
		case consumerSessionTimer:
			x.consumerSilent(t.group, t.id)
		case consumerRevokeTimer:
			x.consumerHeldOn(t.group, t.id)
		}
	}
}

// arm sets a timer to act after d.
func (x *step) arm(t *timer, d time.Duration) { x.timers.arm(t, x.now.Mono.Add(d)) }

func (x *step) reply(token uint64, response any) {
	x.out.Replies = append(x.out.Replies, Reply{Token: token, Response: response})
}

func (x *step) replyAfterCommit(token uint64, response any) {
	x.out.Replies = append(x.out.Replies, Reply{Token: token, Response: response, AfterCommit: true})
}

func (x *step) record(g *group, kv KV) {
	g.owed++
	x.out.Records = append(x.out.Records, kv)
}

func (x *step) note(g *group, n Note) {
	n.Group = g.id
	if n.Generation == 0 {
		n.Generation = g.classic.generation
	}
	x.out.Notes = append(x.out.Notes, n)
}

// find returns a group and remembers that this step may leave it empty; nil when there is none.
func (x *step) find(id string) *group {
	g := x.groups[id]
	if g != nil {
		x.touched = append(x.touched, g)
	}
	return g
}

// create adds a group; nil when the shard holds as many as it may.
func (x *step) create(id string) *group {
	if len(x.groups) >= groupsMax {
		return nil
	}
	g := x.add(id)
	x.touched = append(x.touched, g)
	return g
}

// checkGroupID refuses ids that no member and no record can have (K46).
func checkGroupID(id string) kafka.ErrorCode {
	if id == "" || len(id) > groupIDBytesMax {
		return kafka.InvalidGroupID
	}
	return kafka.None
}
