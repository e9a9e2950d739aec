package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// The bars of one large group, and what its members and the other groups do.
var (
	stableBar = bar{unit: "s", limit: 30}
	beatBar   = bar{unit: "ms", limit: 100}
)

const (
	joinOver       = 10 * time.Second // the members come evenly over this time
	stableMax      = 3 * time.Minute  // a group that is not stable then has failed
	memberBeat     = 3 * time.Second  // what clients do by default
	memberSession  = 45 * time.Second
	memberRejoin   = time.Minute
	otherGroups    = 50
	otherBeat      = 200 * time.Millisecond
	quietTime      = 5 * time.Second // how long the other groups are alone
	assignmentSize = 32              // bytes, as of a few partitions
)

// member is one member of a classic group on a connection of its own. It speaks the protocol by hand: thousands of whole clients would
// measure themselves.
type member struct {
	group, id  string
	conn       net.Conn
	generation atomic.Int32 // of the last assignment; 0 while there is none
}

// roundTrip sends a request and decodes its answer into resp.
func roundTrip(c net.Conn, req kmsg.Request, resp kmsg.Response, patience time.Duration) error {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := c.Write(formatter.AppendRequest(nil, req, 1)); err != nil {
		return err
	}
	var head [4]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	size, skip := binary.BigEndian.Uint32(head[:]), 4
	if size > answerMax {
		return fmt.Errorf("an answer of %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c, body); err != nil {
		return err
	}
	if req.IsFlexible() {
		skip++ // the header has no tags
	}
	if len(body) < skip {
		return fmt.Errorf("an answer of %d bytes", size)
	}
	resp.SetVersion(req.GetVersion())
	return resp.ReadFrom(body[skip:])
}

// enter joins and syncs until the member has an assignment.
func (m *member) enter() error {
	for {
		join := kmsg.NewPtrJoinGroupRequest()
		join.Version, join.Group, join.MemberID, join.ProtocolType = 9, m.group, m.id, "consumer"
		join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = int32(memberSession.Milliseconds()), int32(memberRejoin.Milliseconds())
		join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "range", Metadata: make([]byte, assignmentSize)}}
		joined := kmsg.NewPtrJoinGroupResponse()
		if err := roundTrip(m.conn, join, joined, stableMax); err != nil {
			return fmt.Errorf("join: %w", err)
		}
		switch err := kerr.ErrorForCode(joined.ErrorCode); {
		case errors.Is(err, kerr.MemberIDRequired):
			m.id = joined.MemberID
			continue
		case err != nil:
			return fmt.Errorf("join: %w", err)
		}
		m.id = joined.MemberID
		sync := kmsg.NewPtrSyncGroupRequest()
		sync.Version, sync.Group, sync.MemberID, sync.Generation = 5, m.group, m.id, joined.Generation
		sync.ProtocolType, sync.Protocol = kmsg.StringPtr("consumer"), kmsg.StringPtr("range")
		for i := range joined.Members { // the leader's: all others get no members
			sync.GroupAssignment = append(sync.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{
				MemberID: joined.Members[i].MemberID, MemberAssignment: make([]byte, assignmentSize),
			})
		}
		synced := kmsg.NewPtrSyncGroupResponse()
		if err := roundTrip(m.conn, sync, synced, stableMax); err != nil {
			return fmt.Errorf("sync: %w", err)
		}
		switch err := kerr.ErrorForCode(synced.ErrorCode); {
		case errors.Is(err, kerr.RebalanceInProgress):
			continue
		case err != nil:
			return fmt.Errorf("sync: %w", err)
		}
		m.generation.Store(joined.Generation)
		return nil
	}
}

// beat sends one heartbeat; rejoin says that the group takes its members in anew.
func (m *member) beat() (rejoin bool, err error) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Version, req.Group, req.MemberID, req.Generation = 4, m.group, m.id, m.generation.Load()
	resp := kmsg.NewPtrHeartbeatResponse()
	if err := roundTrip(m.conn, req, resp, requestTime); err != nil {
		return false, fmt.Errorf("heartbeat: %w", err)
	}
	err = kerr.ErrorForCode(resp.ErrorCode)
	if errors.Is(err, kerr.RebalanceInProgress) {
		return true, nil
	}
	return false, err
}

// live is a member's life until ctx ends.
func (m *member) live(ctx context.Context, every time.Duration, seen func(time.Duration)) error {
	if err := m.enter(); err != nil {
		return err
	}
	for sleep(ctx, every) == nil {
		began := time.Now()
		rejoin, err := m.beat()
		if err != nil {
			return err
		}
		seen(time.Since(began))
		if !rejoin {
			continue
		}
		m.generation.Store(0)
		if err := m.enter(); err != nil {
			return err
		}
	}
	return nil
}

// beats collects what heartbeats took.
type beats struct {
	mu  sync.Mutex
	all []time.Duration
}

func (b *beats) add(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = append(b.all, d)
}

// clear forgets what there is.
func (b *beats) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all = nil
}

// take returns the 99th percentile and the longest since the last call, in milliseconds.
func (b *beats) take() (p99, longest float64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.all) == 0 {
		return 0, 0, errors.New("no heartbeat was answered")
	}
	slices.Sort(b.all)
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	p99, longest = ms(b.all[len(b.all)*99/100]), ms(b.all[len(b.all)-1])
	b.all = nil
	return p99, longest, nil
}

// crowd is members that live; the first that fails ends it.
type crowd struct {
	ctx     context.Context
	fail    context.CancelCauseFunc
	wg      sync.WaitGroup
	members []*member
}

// connect adds a member that does nothing yet.
func (c *crowd) connect(addr, group string) error {
	conn, err := net.DialTimeout("tcp", addr, requestTime)
	if err == nil {
		c.members = append(c.members, &member{group: group, conn: conn})
	}
	return err
}

// start begins a member's life after a pause.
func (c *crowd) start(m *member, after, every time.Duration, seen func(time.Duration)) {
	c.wg.Go(func() {
		if sleep(c.ctx, after) != nil {
			return
		}
		if err := m.live(c.ctx, every, seen); err != nil {
			c.fail(fmt.Errorf("a member of %s: %w", m.group, err))
		}
	})
}

func (c *crowd) end() {
	c.fail(nil)
	for _, m := range c.members {
		m.conn.Close() //nolint:errcheck // what waits there ends
	}
	c.wg.Wait()
}

// manyMembers measures how long one classic group takes in thousands of members, and what the other groups notice of it.
func manyMembers(ctx context.Context, b *bench) error {
	n, err := b.start()
	if err != nil {
		return err
	}
	defer n.stop()
	if err := n.needCoordinator(ctx); err != nil {
		return err
	}
	c := &crowd{}
	c.ctx, c.fail = context.WithCancelCause(ctx)
	defer c.end()
	for i := range otherGroups + b.members {
		group := "crowd"
		if i < otherGroups {
			group = "other-" + strconv.Itoa(i)
		}
		if err := c.connect(n.addr, group); err != nil {
			return err
		}
	}
	small, others := c.members[:otherGroups], &beats{}
	for i, m := range small { // not in step, so that one pause does not meet all
		c.start(m, otherBeat*time.Duration(i)/otherGroups, otherBeat, others.add)
	}
	if err := c.until(stableMax, func() bool { return haveAssignments(small) }); err != nil {
		return err
	}
	others.clear()
	if sleep(c.ctx, quietTime) != nil {
		return context.Cause(c.ctx)
	}
	if err := b.noteBeats(others, "with no other load"); err != nil {
		return err
	}
	if err := n.noteJoins(c, c.members[otherGroups:]); err != nil {
		return err
	}
	return b.noteBeats(others, "meanwhile")
}

// noteJoins lets the members of one group come, and notes what that takes until all have an assignment of one generation.
func (n *node) noteJoins(c *crowd, members []*member) error {
	began, ownBefore := time.Now(), ownCPU()
	nodeBefore, err := n.cpu()
	if err != nil {
		return err
	}
	for i, m := range members {
		c.start(m, joinOver*time.Duration(i)/time.Duration(len(members)), memberBeat, func(time.Duration) {})
	}
	first := members[0]
	err = c.until(stableMax, func() bool {
		return haveAssignments(members) && !slices.ContainsFunc(members, func(m *member) bool { return m.generation.Load() != first.generation.Load() })
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	nodeAfter, err := n.cpu()
	if err != nil {
		return err
	}
	b := n.bench
	b.note(fmt.Sprintf("%d members join over %v: stable after", len(members), joinOver), took.Seconds(), stableBar)
	b.note("generations until then", float64(first.generation.Load()), bar{unit: "times"})
	b.note("processor time of the node until then", nodeAfter-nodeBefore, bar{unit: "s"})
	b.note("processor time of the members until then", (ownCPU() - ownBefore).Seconds(), bar{unit: "s"})
	return nil
}

func (b *bench) noteBeats(others *beats, when string) error {
	p99, longest, err := others.take()
	if err != nil {
		return err
	}
	b.note(fmt.Sprintf("heartbeats of %d other groups, %s: p99", otherGroups, when), p99, beatBar)
	b.note(fmt.Sprintf("heartbeats of %d other groups, %s: longest", otherGroups, when), longest, bar{unit: "ms"})
	return nil
}

// ownCPU is the processor time that this process has used: the members share the machine with the node.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func haveAssignments(members []*member) bool {
	return !slices.ContainsFunc(members, func(m *member) bool { return m.generation.Load() == 0 })
}

// until waits for what all members are to be; it ends with the first that fails.
func (c *crowd) until(patience time.Duration, is func() bool) error {
	for began := time.Now(); !is(); {
		if time.Since(began) > patience {
			return fmt.Errorf("not stable within %v", patience)
		}
		if sleep(c.ctx, 20*time.Millisecond) != nil {
			return context.Cause(c.ctx)
		}
	}
	return nil
}

// needCoordinator has the topic of the groups made.
func (n *node) needCoordinator(ctx context.Context) error {
	c, err := net.DialTimeout("tcp", n.addr, requestTime)
	if err != nil {
		return err
	}
	defer c.Close()
	req := kmsg.NewPtrFindCoordinatorRequest()
	req.Version, req.CoordinatorKeys = 4, []string{"crowd"}
	for began := time.Now(); ; {
		resp := kmsg.NewPtrFindCoordinatorResponse()
		if err := roundTrip(c, req, resp, requestTime); err != nil {
			return err
		}
		if len(resp.Coordinators) == 1 && resp.Coordinators[0].ErrorCode == 0 {
			return nil
		}
		if time.Since(began) > requestTime {
			return fmt.Errorf("no coordinator within %v: %+v", requestTime, resp.Coordinators)
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}
