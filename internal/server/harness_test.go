package server

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/auth"
	"strandline.dev/internal/config"
	"strandline.dev/internal/controller"
	"strandline.dev/internal/coordinator"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/metrics"
	"strandline.dev/internal/quorum"
	"strandline.dev/internal/record"
	"strandline.dev/internal/replica"
	"strandline.dev/internal/storage"
	"strandline.dev/internal/sys"
	"strandline.dev/internal/sys/systest"
	"strandline.dev/internal/wire"
)

// testBroker is one whole node without its composition root: real quorum, controller, partitions and server over an in-memory file
// system, real sockets on loopback.
type testBroker struct {
	t       testing.TB
	server  *Server
	host    *replica.Host
	spy     *spyReplicas
	control *testController
	groups  *coordinator.Coordinator
	auth    *auth.Authenticator
	quorum  *quorum.Quorum
	fs      *systest.FS // unless the test has a real directory
	wall    *systest.Wall
	log     *logBuffer
	metrics *metrics.Registry
	addr    string
	stop    context.CancelFunc // of the listener
	served  chan error
}

type testOptions struct {
	voters   Voters
	dev      bool
	broker   map[string]string // settings of the "kafka:" section
	limits   Limits
	disk     string // a real directory instead of the in-memory file system
	listener func() net.Listener
	listen   []Listener // further listeners; Net is filled in
	door     Door       // of the first listener
	access   auth.Options
	tokens   *auth.Tokens
	session  time.Duration // Config.SessionMax
	audit    Audit
	failing  error // look-ups in the partitions fail from the beginning
}

// bind opens the listener of a test's broker.
func (o *testOptions) bind(t testing.TB) net.Listener {
	if o.listener != nil {
		return o.listener()
	}
	return listenLoopback(t, "127.0.0.1:0")
}

// logBuffer keeps what was logged.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = bytes.Buffer{}
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newTestBroker(t testing.TB, o testOptions) *testBroker {
	t.Helper()
	wall := systest.NewWall(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	fs := systest.NewFS(1)
	machine, path := systest.Machine(fs, nil, wall), "/data"
	if o.disk != "" {
		machine, path = sys.Real(), o.disk
	}
	b := &testBroker{t: t, fs: fs, wall: wall, log: &logBuffer{}, metrics: metrics.New(), served: make(chan error, 1)}
	log := slog.New(slog.NewTextHandler(b.log, nil))
	dir := openTestDir(t, storage.DirOptions{Machine: machine, Path: path, Log: log, Metrics: b.metrics.Storage})
	var err error
	b.quorum, err = quorum.Open(quorum.Config{Machine: machine, Dir: dir, Node: 1, Log: log})
	must(t, err)
	run := newRunner(t)
	run.forever(func(ctx context.Context) { _ = b.quorum.Run(ctx) })
	ctl := controller.New(controller.Config{Quorum: b.quorum, Wall: wall, Log: log, Metrics: b.metrics.Broker})
	run.forever(func(ctx context.Context) { ctl.Run(ctx) })
	bc, err := config.ResolveBroker(o.broker, o.dev)
	must(t, err)
	brokerConfig := func() config.Broker {
		img := b.quorum.Image()
		c, err := bc.WithDynamic(img.BrokerConfigs(kafka.NoNode), img.BrokerConfigs(1))
		orPanic(err)
		return c
	}
	topicConfig := func(tp *metadata.Topic) config.Topic {
		c, err := config.ResolveTopic(tp.Configs, brokerConfig(), o.dev)
		orPanic(err)
		return c
	}
	b.host, err = replica.NewHost(replica.Config{
		Dir: dir, Node: 1, Machine: machine, Log: log, Metrics: b.metrics.Broker, TopicConfig: topicConfig,
		Purged: func(gone []kafka.TopicPartition) { confirmPurge(ctl, gone) },
	})
	must(t, err)
	t.Cleanup(func() { _ = b.host.Close(false) })
	b.spy, b.control = &spyReplicas{Host: b.host}, &testController{Controller: ctl}
	b.failLookups(o.failing)
	b.groups = coordinator.New(coordinator.Config{
		Node: 1, Image: b.quorum.Image, Replicas: b.spy, Controller: b.control, Broker: brokerConfig, TopicConfig: topicConfig, Wall: wall, Log: log,
		Metrics: b.metrics.Broker, Sees: auth.NewAuthorizer(b.quorum.Image, o.access).Sees,
	})
	t.Cleanup(b.groups.Close)
	nl := o.bind(t)
	b.addr = nl.Addr().String()
	epoch := b.register(run, ctl, machine, dir, append([]Listener{{Name: "plain", Net: nl}}, o.listen...))
	cfg := Config{
		Node: 1, Image: b.quorum.Image, Replicas: b.spy, Logs: b.host, Quorum: b.quorum, Controller: b.control, Groups: b.groups,
		Broker: brokerConfig, TopicConfig: topicConfig, BrokerEpoch: func() kafka.BrokerEpoch { return epoch },
		Ends: func(_ context.Context, tps []kafka.TopicPartition) []metadata.PartitionEnds {
			return b.host.Ends(1, tps)
		}, Voters: o.voters, Dev: o.dev, Wall: wall, Log: log, Metrics: b.metrics.Broker, Limits: o.limits,
	}
	b.server = New(b.guarded(cfg, o))
	ctx, stop := context.WithCancel(context.Background())
	b.stop = stop
	go func() { b.served <- b.server.Serve(ctx, Listener{Name: "plain", Net: nl, Door: o.door}) }()
	for _, l := range o.listen {
		run.forever(func(ctx context.Context) { _ = b.server.Serve(ctx, l) })
	}
	t.Cleanup(func() {
		stop()
		if b.served != nil {
			<-b.served
		}
	})
	return b
}

// confirmPurge does what the node package does when directories are gone. The host repeats it until it is heard.
func confirmPurge(ctl *controller.Controller, gone []kafka.TopicPartition) {
	ctx, cancel := context.WithTimeout(context.Background(), testWait)
	defer cancel()
	_, _, _ = ctl.Submit(ctx, metadata.ReplicasPurged{Node: 1, Partitions: gone})
}

// guarded says who may come in and do what.
func (b *testBroker) guarded(c Config, o testOptions) Config {
	b.auth = auth.NewAuthenticator(b.quorum.Image, o.tokens)
	c.Access, c.Authenticator = auth.NewAuthorizer(b.quorum.Image, o.access), b.auth
	c.SessionMax, c.Audit = o.session, o.audit
	return c
}

// openTestDir opens a data directory until the test ends, so that the next broker of the test can open it.
func openTestDir(t testing.TB, o storage.DirOptions) *storage.Dir {
	dir, err := storage.OpenDir(o)
	must(t, err)
	t.Cleanup(func() { _ = dir.Close(storage.CloseOptions{}) })
	return dir
}

// register does what the node package does at a start: recover, register, reconcile for ever, unfence.
func (b *testBroker) register(run *runner, ctl *controller.Controller, m sys.Machine, dir *storage.Dir, ls []Listener) kafka.BrokerEpoch {
	t := b.t
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err := b.host.Recover(ctx)
	must(t, err)
	ev := metadata.RegisterBroker{
		Node: 1, Directory: dir.Identity().DirectoryID, StartNumber: dir.StartNumber(), BootID: dir.BootID(),
		Roles: []string{"controller", "broker"},
	}
	rand.Read(ev.Incarnation[:])
	for _, l := range ls {
		at := l.Net.Addr().(*net.TCPAddr)
		ev.Listeners = append(ev.Listeners, metadata.Listener{Name: l.Name, Host: at.IP.String(), Port: int32(at.Port)})
	}
	answer, _, err := ctl.Submit(ctx, ev)
	must(t, err)
	reg := answer.(metadata.Registered)
	if !reg.OK() {
		t.Fatalf("not registered: %v", reg.Outcome)
	}
	b.host.SetBrokerEpoch(reg.Epoch)
	must(t, dir.CommitBootID())
	run.forever(func(ctx context.Context) {
		for {
			changed := b.quorum.Changed()
			img := b.quorum.Image()
			_ = b.host.Reconcile(img)
			b.groups.Update(img)
			select {
			case <-ctx.Done():
				return
			case <-changed:
			}
		}
	})
	run.forever(b.host.Run)
	must(t, b.host.WaitApplied(ctx, uint64(reg.Epoch)))
	_, version, err := ctl.Submit(ctx, metadata.BrokerReady{Node: 1, Epoch: reg.Epoch})
	must(t, err)
	must(t, b.host.WaitApplied(ctx, version))
	return reg.Epoch
}

// runner ends goroutines at the end of a test, the last one first.
type runner struct{ t testing.TB }

func newRunner(t testing.TB) *runner { return &runner{t} }

func (r *runner) forever(f func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f(ctx) }()
	r.t.Cleanup(func() { cancel(); <-done })
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// orPanic is must for goroutines that are not the test's.
func orPanic(err error) {
	if err != nil {
		panic(err)
	}
}

func listenLoopback(t testing.TB, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// eventually waits for a condition that something else makes true; the bound only ends a hopeless test.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// testClient is a raw Kafka client: it sends what it is told and nothing else.
type testClient struct {
	t    testing.TB
	conn net.Conn
	next int32
	id   string
}

// countedConn counts the bytes of both directions.
type countedConn struct {
	net.Conn
	bytes *atomic.Int64
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.bytes.Add(int64(n))
	return n, err
}

// testWait bounds every read of a test client; it only ends a hopeless test.
const testWait = 20 * time.Second

func (b *testBroker) dial() *testClient { return dialTo(b.t, b.addr) }

func dialTo(t testing.TB, addr string) *testClient {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	must(t, err)
	t.Cleanup(func() { nc.Close() })
	return &testClient{t: t, conn: nc, id: "test"}
}

// frame encodes a request with its header and size.
func (c *testClient) frame(req kmsg.Request, correlation int32) []byte {
	f := binary.BigEndian.AppendUint16(make([]byte, 4), uint16(req.Key()))
	f = binary.BigEndian.AppendUint16(f, uint16(req.GetVersion()))
	f = binary.BigEndian.AppendUint32(f, uint32(correlation))
	f = binary.BigEndian.AppendUint16(f, uint16(len(c.id)))
	f = append(f, c.id...)
	if req.IsFlexible() {
		f = append(f, 0)
	}
	f = req.AppendTo(f)
	binary.BigEndian.PutUint32(f, uint32(len(f)-4))
	return f
}

// send sends requests without waiting and returns the first one's correlation id; the others follow it.
func (c *testClient) send(reqs ...kmsg.Request) int32 {
	c.t.Helper()
	first := c.next
	var all []byte
	for _, r := range reqs {
		all = append(all, c.frame(r, c.next)...)
		c.next++
	}
	c.write(all)
	return first
}

func (c *testClient) write(b []byte) {
	c.t.Helper()
	if _, err := c.conn.Write(b); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

// read reads the next answer, which must be for req with that correlation id, and decodes all of it.
func (c *testClient) read(req kmsg.Request, correlation int32) kmsg.Response {
	c.t.Helper()
	resp, err := c.tryRead(req, correlation)
	if err != nil {
		c.t.Fatalf("reading the answer to key %d version %d: %v", req.Key(), req.GetVersion(), err)
	}
	return resp
}

func (c *testClient) tryRead(req kmsg.Request, correlation int32) (kmsg.Response, error) {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(testWait))
	var head [4]byte
	if _, err := io.ReadFull(c.conn, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:]))
	if _, err := io.ReadFull(c.conn, body); err != nil {
		return nil, err
	}
	if got := int32(binary.BigEndian.Uint32(body)); got != correlation {
		c.t.Fatalf("answer carries correlation id %d, want %d", got, correlation)
	}
	body = body[4:]
	if req.IsFlexible() && req.Key() != wire.KeyApiVersions {
		body = body[1:]
	}
	resp := req.ResponseKind()
	if err := resp.ReadFrom(body); err != nil {
		return nil, err
	}
	if again := resp.AppendTo(nil); !bytes.Equal(again, body) {
		c.t.Fatalf("answer to key %d version %d is not what its schema says:\n%x\n%x", req.Key(), req.GetVersion(), body, again)
	}
	return resp, nil
}

// discard reads the next answer into buf without looking at it.
func (c *testClient) discard(buf []byte) {
	c.t.Helper()
	if _, err := io.ReadFull(c.conn, buf[:4]); err != nil {
		c.t.Fatal(err)
	}
	if _, err := io.ReadFull(c.conn, buf[:binary.BigEndian.Uint32(buf)]); err != nil {
		c.t.Fatal(err)
	}
}

// ask sends one request and reads its answer.
func ask[R kmsg.Response](c *testClient, req kmsg.Request) R {
	c.t.Helper()
	id := c.send(req)
	return c.read(req, id).(R)
}

// closed waits for the broker to close the connection and fails the test on any byte before.
func (c *testClient) closed() {
	c.t.Helper()
	c.conn.SetReadDeadline(time.Now().Add(testWait))
	n, err := c.conn.Read(make([]byte, 1))
	if n != 0 || err == nil {
		c.t.Fatalf("the connection carries %d byte, want it closed", n)
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		c.t.Fatal("the connection is open, want it closed")
	}
}

// create makes a topic and fails the test when that is refused.
func (c *testClient) create(topic string, partitions int32, configs ...string) kafka.TopicID {
	c.t.Helper()
	req := newCreate(topic, partitions, configs...)
	resp := ask[*kmsg.CreateTopicsResponse](c, req)
	if code := resp.Topics[0].ErrorCode; code != 0 {
		c.t.Fatalf("create %s: %v %s", topic, kafka.ErrorCode(code), str(resp.Topics[0].ErrorMessage))
	}
	return resp.Topics[0].TopicID
}

func newCreate(topic string, partitions int32, configs ...string) *kmsg.CreateTopicsRequest {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Version, req.TimeoutMillis = 7, 10_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, partitions, 1
	for i := 0; i+1 < len(configs); i += 2 {
		cfg := kmsg.NewCreateTopicsRequestTopicConfig()
		cfg.Name, cfg.Value = configs[i], &configs[i+1]
		t.Configs = append(t.Configs, cfg)
	}
	req.Topics = append(req.Topics, t)
	return req
}

func str(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// newProduce builds a publish of one batch to one partition, by name (version 9).
func newProduce(topic string, partition int32, batch []byte) *kmsg.ProduceRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Version, req.Acks, req.TimeoutMillis = 9, -1, 10_000
	t := kmsg.NewProduceRequestTopic()
	t.Topic = topic
	p := kmsg.NewProduceRequestTopicPartition()
	p.Partition, p.Records = partition, batch
	t.Partitions = append(t.Partitions, p)
	req.Topics = append(req.Topics, t)
	return req
}

// newBatch builds a batch of records with these values and the broker's present time.
func (b *testBroker) newBatch(values ...string) record.Batch {
	return newBatchAt(b.wall.Now().UnixMilli(), values...)
}

func newBatchAt(ms int64, values ...string) record.Batch {
	bu := record.NewBuilder(record.None)
	for _, v := range values {
		bu.Add(ms, nil, []byte(v), nil)
	}
	return bu.Build()
}

// publish publishes and returns the answer for the one partition.
func (c *testClient) publish(req *kmsg.ProduceRequest) kmsg.ProduceResponseTopicPartition {
	c.t.Helper()
	resp := ask[*kmsg.ProduceResponse](c, req)
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != 1 {
		c.t.Fatalf("publish: answer has not exactly one partition: %+v", resp.Topics)
	}
	return resp.Topics[0].Partitions[0]
}

// newFetch builds a fetch of one partition, by name (version 12).
func newFetch(topic string, partition int32, offset int64) *kmsg.FetchRequest {
	req := kmsg.NewPtrFetchRequest()
	req.Version, req.MaxBytes, req.MinBytes, req.SessionEpoch = 12, 1<<20, 1, -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic = topic
	t.Partitions = append(t.Partitions, newFetchPartition(partition, offset))
	req.Topics = append(req.Topics, t)
	return req
}

func newFetchPartition(partition int32, offset int64) kmsg.FetchRequestTopicPartition {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, offset, 1<<20
	return p
}

// values returns the values of all records in a fetched set.
func values(t testing.TB, records []byte) []string {
	t.Helper()
	var out []string
	for len(records) > 0 {
		b, rest, err := record.Split(records)
		must(t, err)
		for r, err := range b.Records(0) {
			must(t, err)
			out = append(out, string(r.Value))
		}
		records = rest
	}
	return out
}

// spyReplicas is the host with counters, and with look-ups that can be made to fail.
type spyReplicas struct {
	*replica.Host
	parks atomic.Int64
	fail  atomic.Pointer[error]
	blind atomic.Bool // the host seems to hold nothing
	// damaged is a partition whose log seems damaged.
	damaged atomic.Pointer[kafka.TopicPartition]
}

func (r *spyReplicas) Describe(tp kafka.TopicPartition) (replica.PartitionStatus, bool) {
	if r.blind.Load() {
		return replica.PartitionStatus{}, false
	}
	st, held := r.Host.Describe(tp)
	if d := r.damaged.Load(); d != nil && *d == tp {
		st.Role, st.Problem = replica.Offline, "damaged"
	}
	return st, held
}

func (r *spyReplicas) Park(items []replica.FetchItem, o replica.FetchOptions, minBytes int) *replica.FetchWait {
	r.parks.Add(1)
	return r.Host.Park(items, o, minBytes)
}

func (r *spyReplicas) Read(items []replica.FetchItem, o replica.FetchOptions, dst *replica.FetchBuffer) []replica.FetchResult {
	results := r.Host.Read(items, o, dst)
	if err := r.fail.Load(); err != nil {
		for i := range results {
			results[i] = replica.FetchResult{HighWatermark: -1, LastStable: -1, LogStart: -1, Leader: -1, LeaderEpoch: -1, Err: *err}
		}
	}
	return results
}

func (r *spyReplicas) ListOffset(tp kafka.TopicPartition, ts int64, current kafka.LeaderEpoch, readCommitted bool) (storage.TimestampOffset, error) {
	if err := r.fail.Load(); err != nil {
		return storage.TimestampOffset{}, *err
	}
	return r.Host.ListOffset(tp, ts, current, readCommitted)
}

func (r *spyReplicas) Backlogs(ctx context.Context, items []replica.BacklogItem) []replica.Backlog {
	told := r.Host.Backlogs(ctx, items)
	if err := r.fail.Load(); err != nil {
		for i := range told {
			told[i] = replica.Backlog{Start: kafka.NoOffset, End: kafka.NoOffset, Err: *err}
		}
	}
	return told
}

func (r *spyReplicas) EpochEnd(tp kafka.TopicPartition, epoch, current kafka.LeaderEpoch) (kafka.EpochEnd, error) {
	if err := r.fail.Load(); err != nil {
		return kafka.EpochEnd{}, *err
	}
	return r.Host.EpochEnd(tp, epoch, current)
}

// failLookups makes look-ups in the partitions fail, and succeed again with nil.
func (b *testBroker) failLookups(err error) {
	if err == nil {
		b.spy.fail.Store(nil)
		return
	}
	b.spy.fail.Store(&err)
}

// testController is the controller behind a gate, and with failures on order.
type testController struct {
	Controller
	mu   sync.Mutex
	err  error
	gate chan struct{} // submissions wait for it to be closed; nil: open

	waiting atomic.Int64
}

func (c *testController) Submit(ctx context.Context, ev metadata.Event) (any, uint64, error) {
	c.mu.Lock()
	err, gate := c.err, c.gate
	c.mu.Unlock()
	if gate != nil {
		c.waiting.Add(1)
		defer c.waiting.Add(-1)
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
	if err != nil {
		return nil, 0, err
	}
	return c.Controller.Submit(ctx, ev)
}

// shut makes submissions wait; the returned function lets them go.
func (c *testController) shut() (open func()) {
	gate := make(chan struct{})
	c.mu.Lock()
	c.gate = gate
	c.mu.Unlock()
	return func() { close(gate) }
}

func (c *testController) failWith(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}
