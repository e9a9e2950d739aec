package coordinator

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"strandline.dev/internal/config"
	"strandline.dev/internal/controller"
	"strandline.dev/internal/group"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/quorum"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
)

// world is a node from the disk up to the coordinator: everything real but the file system and the wall clock.
type world struct {
	t      testing.TB
	fs     *systest.FS
	wall   *systest.Wall
	broker map[string]string
	log    *logBuffer
	disk   string              // a directory of the real file system, which is used instead of fs
	shape  func(*config.Topic) // changes the configuration of topics, if set

	host    *faultyHost
	quorum  *quorum.Quorum
	control *controller.Controller
	groups  *Coordinator
	stops   []func()
	clean   *atomic.Bool
	epoch   kafka.BrokerEpoch
}

// logBuffer keeps what was logged.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// faultyHost is the host with appends and reads that can be made to fail.
type faultyHost struct {
	*replica.Host
	failAppends, failReads atomic.Bool
	appends                atomic.Int64
	failOne                atomic.Bool            // the next append fails
	beforeAppend           atomic.Pointer[func()] // called once, by the next append
}

func (h *faultyHost) Append(items []replica.AppendItem, acks int16, timeout time.Duration) *replica.Produce {
	h.appends.Add(1)
	if f := h.beforeAppend.Swap(nil); f != nil {
		(*f)()
	}
	if h.failAppends.Load() || h.failOne.Swap(false) {
		items[0].Batch = nil
		return h.Host.Append(items, 7, timeout) // acks that do not exist: refused, nothing is appended
	}
	return h.Host.Append(items, acks, timeout)
}

func (h *faultyHost) Read(items []replica.FetchItem, o replica.FetchOptions, dst *replica.FetchBuffer) []replica.FetchResult {
	results := h.Host.Read(items, o, dst)
	if h.failReads.Load() {
		for i := range results {
			results[i] = replica.FetchResult{Err: replica.ErrStorage}
		}
	}
	return results
}

// newWorld starts a node on an empty disk, with the topic in place (4 partitions) and groups that wait for nobody.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := newIdleWorld(t)
	w.start()
	w.must(w.groups.Create(context.Background()))
	return w
}

// newIdleWorld is newWorld before the start.
func newIdleWorld(t testing.TB) *world {
	return &world{
		t: t, fs: systest.NewFS(1), wall: systest.NewTickingWall(time.Now()), log: &logBuffer{},
		broker: map[string]string{"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "4"},
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%v\n%s", err, w.log)
	}
}

// start builds and registers the node, as package node does.
func (w *world) start() {
	w.t.Helper()
	w.must(w.tryStart())
}

func (w *world) tryStart() error {
	machine, path := systest.Machine(w.fs, nil, w.wall), "/data"
	if w.disk != "" {
		machine, path = sys.Real(), w.disk
	}
	log, m := slog.New(slog.NewTextHandler(w.log, nil)), metrics.New()
	w.clean = new(atomic.Bool)
	dir, err := storage.OpenDir(storage.DirOptions{Machine: machine, Path: path, Log: log, Metrics: m.Storage})
	if err != nil {
		return err
	}
	clean := w.clean
	w.stops = []func(){func() { dir.Close(storage.CloseOptions{Clean: clean.Load(), BrokerEpoch: w.epoch}) }}
	if w.quorum, err = quorum.Open(quorum.Config{Machine: machine, Dir: dir, Node: 1, Log: log}); err != nil {
		return err
	}
	w.forever(func(ctx context.Context) { _ = w.quorum.Run(ctx) })
	w.control = controller.New(controller.Config{Quorum: w.quorum, Wall: w.wall, Log: log, Metrics: m.Broker})
	w.forever(w.control.Run)
	bc, err := config.ResolveBroker(w.broker, false)
	if err != nil {
		return err
	}
	topicConfig := func(tp *metadata.Topic) config.Topic {
		c, err := config.ResolveTopic(tp.Configs, bc, false)
		if err != nil {
			panic(err)
		}
		if w.shape != nil {
			w.shape(&c)
		}
		return c
	}
	host, err := replica.NewHost(replica.Config{
		Dir: dir, Node: 1, Machine: machine, Log: log, Metrics: m.Broker, TopicConfig: topicConfig, Purged: func([]kafka.TopicPartition) {},
	})
	if err != nil {
		return err
	}
	w.stops = append(w.stops, func() { _ = host.Close(clean.Load()) })
	w.host = &faultyHost{Host: host}
	w.groups = New(Config{
		Node: 1, Image: w.quorum.Image, Replicas: w.host, Controller: w.control, Broker: func() config.Broker { return bc },
		TopicConfig: topicConfig, Wall: w.wall, Log: log, Metrics: m.Broker,
	})
	w.stops = append(w.stops, w.groups.Close)
	return w.register(dir)
}

func (w *world) register(dir *storage.Dir) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	found, err := w.host.Recover(ctx)
	if err != nil {
		return err
	}
	ev := metadata.RegisterBroker{
		Node: 1, Directory: dir.Identity().DirectoryID, StartNumber: dir.StartNumber(), BootID: dir.BootID(),
		Roles: []string{"controller", "broker"}, Unclean: found.Unclean, Damaged: found.Damaged,
		Listeners: []metadata.Listener{{Name: "plain", Host: "localhost", Port: 9092}},
	}
	rand.Read(ev.Incarnation[:])
	answer, _, err := w.control.Submit(ctx, ev)
	if err != nil {
		return err
	}
	reg := answer.(metadata.Registered)
	if !reg.OK() {
		return errors.New(reg.Message)
	}
	w.epoch = reg.Epoch
	w.host.SetBrokerEpoch(reg.Epoch)
	if err := dir.CommitBootID(); err != nil {
		return err
	}
	q, host, groups := w.quorum, w.host, w.groups
	w.forever(func(ctx context.Context) {
		for {
			changed := q.Changed()
			img := q.Image()
			_ = host.Reconcile(img)
			groups.Update(img)
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	})
	w.forever(host.Run)
	if err := host.WaitApplied(ctx, uint64(reg.Epoch)); err != nil {
		return err
	}
	_, version, err := w.control.Submit(ctx, metadata.BrokerReady{Node: 1, Epoch: reg.Epoch})
	if err != nil {
		return err
	}
	return host.WaitApplied(ctx, version)
}

func (w *world) forever(f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	w.stops = append(w.stops, func() { cancel(); <-done })
}

// stop ends the node, newest part first.
func (w *world) stop(clean bool) {
	w.clean.Store(clean)
	for i := len(w.stops) - 1; i >= 0; i-- {
		w.stops[i]()
	}
	w.stops = nil
}

// restart stops the node cleanly or as kill -9 does, and starts it again.
func (w *world) restart(clean bool) {
	w.t.Helper()
	w.stop(clean)
	w.start()
	w.settle()
}

// settle waits until every shard has loaded.
func (w *world) settle() {
	w.t.Helper()
	w.must(w.groups.Create(context.Background()))
}

// topic creates a topic and returns its id.
func (w *world) topic(name string, configs map[string]*string) kafka.TopicID {
	w.t.Helper()
	answer, version, err := w.control.Submit(context.Background(), metadata.CreateTopics{Topics: []metadata.NewTopic{
		{Name: name, Partitions: 2, ReplicationFactor: 1, Configs: configs},
	}})
	w.must(err)
	r := answer.([]metadata.TopicResult)[0]
	if !r.OK() {
		w.t.Fatal(r.Message)
	}
	w.must(w.host.WaitApplied(context.Background(), version))
	return r.ID
}

// await waits for a request and returns its reply. The bound only ends a hopeless test.
func await[R any](w *world, wait *Wait) (*R, error) {
	w.t.Helper()
	over := time.NewTimer(time.Minute)
	defer over.Stop()
	for !wait.Done() {
		select {
		case <-wait.Ready():
		case <-over.C:
			w.t.Fatalf("no answer\n%s", w.log)
		}
	}
	got, err := wait.Result()
	if err != nil {
		return nil, err
	}
	return got.(*R), nil
}

// commit stores an offset without a member and returns the code of the partition.
func (w *world) commit(groupID string, topic kafka.TopicID, offset kafka.Offset) (kafka.ErrorCode, error) {
	w.t.Helper()
	r, err := await[group.CommitReply](w, w.groups.Submit(groupID, func(token uint64) group.Event {
		return group.CommitOffsets{Token: token, Group: groupID, Generation: group.NoGeneration, Topics: []group.CommitTopic{
			{Name: "orders", ID: topic, Partitions: []group.CommitPartition{{Partition: 0, Offset: offset}}},
		}}
	}))
	if err != nil {
		return kafka.None, err
	}
	return r.Topics[0].Partitions[0].Code, nil
}

// mustCommit commits, trying again while the coordinator is not there.
func (w *world) mustCommit(groupID string, topic kafka.TopicID, offset kafka.Offset) {
	w.t.Helper()
	for {
		code, err := w.commit(groupID, topic, offset)
		if err == nil && code == kafka.None {
			return
		}
		if err == nil || errors.Is(err, ErrUnreadable) {
			w.t.Fatalf("commit: %v %v", code, err)
		}
	}
}

// fetch reads the offset of a group in the topic that has the id.
func (w *world) fetch(groupID string, topic kafka.TopicID) (kafka.Offset, error) {
	w.t.Helper()
	r, err := await[group.FetchReply](w, w.groups.Submit(groupID, func(token uint64) group.Event {
		return group.FetchOffsets{Token: token, Group: groupID, Topics: []group.FetchTopic{{Name: "orders", ID: topic, Partitions: []int32{0}}}}
	}))
	if err != nil {
		return kafka.NoOffset, err
	}
	return r.Topics[0].Partitions[0].Offset, nil
}

// mustFetch fetches, trying again while the coordinator is not there.
func (w *world) mustFetch(groupID string, topic kafka.TopicID) kafka.Offset {
	w.t.Helper()
	for {
		offset, err := w.fetch(groupID, topic)
		if err == nil {
			return offset
		}
		if errors.Is(err, ErrUnreadable) {
			w.t.Fatal(err)
		}
	}
}

func (w *world) join(groupID, member string) *Wait {
	var random kafka.ID
	rand.Read(random[:])
	return w.groups.Submit(groupID, func(token uint64) group.Event {
		return group.Join{
			Token: token, Group: groupID, MemberID: member, ClientID: "c", ClientHost: "/h", ProtocolType: "consumer",
			Protocols: []group.Protocol{{Name: "range", Metadata: []byte("m")}}, SessionTimeout: 10 * time.Second, RebalanceTimeout: 20 * time.Second,
			Random: random,
		}
	})
}

func (w *world) sync(groupID, member string, generation group.Generation, assign ...string) *Wait {
	return w.groups.Submit(groupID, func(token uint64) group.Event {
		ev := group.Sync{Token: token, Group: groupID, MemberID: member, Generation: generation}
		for _, m := range assign {
			ev.Assignments = append(ev.Assignments, group.MemberAssignment{MemberID: m, Assignment: []byte("of " + m)})
		}
		return ev
	})
}

func (w *world) heartbeat(groupID, member string, generation group.Generation) (kafka.ErrorCode, error) {
	w.t.Helper()
	r, err := await[group.HeartbeatReply](w, w.groups.Submit(groupID, func(token uint64) group.Event {
		return group.Heartbeat{Token: token, Group: groupID, MemberID: member, Generation: generation}
	}))
	if err != nil {
		return kafka.None, err
	}
	return r.Code, nil
}

// joinAlone makes one member with an assignment.
func (w *world) joinAlone(groupID string) (member string, generation group.Generation) {
	w.t.Helper()
	j, err := await[group.JoinReply](w, w.join(groupID, ""))
	w.must(err)
	if j.Code != kafka.None {
		w.t.Fatal(j.Code)
	}
	s, err := await[group.SyncReply](w, w.sync(groupID, j.MemberID, j.Generation, j.MemberID))
	w.must(err)
	if s.Code != kafka.None || string(s.Assignment) != "of "+j.MemberID {
		w.t.Fatalf("%+v", s)
	}
	return j.MemberID, j.Generation
}

func (w *world) describe(groupID string) group.Description {
	w.t.Helper()
	r, err := await[group.DescribeReply](w, w.groups.Submit(groupID, func(token uint64) group.Event {
		return group.DescribeGroups{Token: token, Groups: []string{groupID}}
	}))
	w.must(err)
	return r.Groups[0]
}

// partition is where the progress of a group is kept.
func (w *world) partition(groupID string) kafka.TopicPartition {
	t := topicIn(w.quorum.Image())
	return kafka.TopicPartition{Topic: t.ID, Partition: partitionOf(groupID, len(t.Partitions))}
}

// shardOf is the shard that serves a group.
func (w *world) shardOf(groupID string) *shard {
	t := topicIn(w.quorum.Image())
	return w.groups.shard(t, partitionOf(groupID, len(t.Partitions)))
}
