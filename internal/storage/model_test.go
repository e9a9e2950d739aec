package storage

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/sys/systest"
)

var (
	modelRuns = flag.Int("model.runs", 2, "seeds per model test")
	modelOps  = flag.Int("model.ops", 100, "operations per seed")
	modelSeed = flag.Uint64("model.seed", 1, "first seed")
)

// outcome is one state that the log may be found in: what is in it, and bounds on where it begins and ends.
type outcome struct {
	batches        []record.Batch // all batches since the last reset, also below the start
	startLo        kafka.Offset
	startHi        kafka.Offset
	minEnd, maxEnd kafka.Offset
	compacted      kafka.Offset // below it superseded records may be gone
}

// model is the log as a slice. What it allows after a crash is the list of outcomes: two while an operation is under way.
type model struct {
	t                    testing.TB
	rng                  *rand.Rand
	fs                   *systest.FS
	dir                  *Dir
	log                  *Log
	opts                 LogOptions
	at                   time.Time
	epoch                kafka.LeaderEpoch
	seq                  map[kafka.ProducerID]int32
	trace                []string
	crashes              int
	compactions, removed int

	mu     sync.Mutex // the hook runs on other goroutines when several files are synced
	now    outcome
	during *outcome     // the other outcome while an operation runs
	acked  kafka.Offset // the highest stored end reported
	hw     kafka.Offset
}

func newModel(t testing.TB, seed uint64, o LogOptions) *model {
	m := &model{t: t, rng: rand.New(rand.NewPCG(seed, 99)), fs: systest.NewFS(seed), opts: o, at: testDay, seq: map[kafka.ProducerID]int32{}}
	m.dir = newTestDir(t, m.fs)
	m.opts.OnStored = func(end kafka.Offset, err error) {
		if err == nil {
			m.ack(end)
		}
	}
	m.log = openTestLog(t, m.dir, m.opts)
	return m
}

func (m *model) ack(end kafka.Offset) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acked = max(m.acked, min(end, m.now.maxEnd))
	m.now.minEnd = m.acked
}

func (m *model) fatal(format string, args ...any) {
	m.t.Helper()
	for _, line := range m.trace {
		m.t.Log(line)
	}
	m.t.Fatalf(format, args...)
}

// begin announces an operation that leads to another outcome; finish adopts it.
func (m *model) begin(next outcome, format string, args ...any) {
	m.trace = append(m.trace, fmt.Sprintf(format, args...))
	m.mu.Lock()
	m.during = &next
	m.mu.Unlock()
}

func (m *model) finish() {
	m.mu.Lock()
	m.now, m.during = *m.during, nil
	m.acked = min(m.acked, m.now.maxEnd)
	m.now.minEnd = m.acked
	m.hw = min(max(m.hw, m.now.startLo), m.now.maxEnd)
	m.mu.Unlock()
}

func (m *model) end() kafka.Offset { return m.now.maxEnd }

// step does one random operation.
func (m *model) step() {
	m.at = m.at.Add(time.Duration(m.rng.IntN(1000)) * time.Millisecond)
	switch p := m.rng.IntN(100); {
	case p < 42:
		m.append()
	case p < 51:
		m.appendReplicated()
	case p < 69:
		m.syncRound()
	case p < 79:
		m.compact()
	case p < 83:
		m.truncate()
	case p < 86:
		m.advance()
	case p < 91:
		m.retain()
	case p < 95:
		m.savePoints()
	case p < 96:
		m.reopenClean()
	case p < 97:
		m.reset()
	default:
		m.epoch++
		if m.rng.IntN(2) == 0 {
			if err := m.log.AssignEpoch(m.epoch); err != nil {
				m.fatal("assign epoch: %v", err)
			}
		}
	}
	m.check("after", m.log, []outcome{m.now}, false)
}

func (m *model) newBatch() record.Batch {
	if m.rng.IntN(8) == 0 {
		m.epoch++
	}
	b := m.keyedBatch()
	if m.rng.IntN(3) == 0 {
		id := kafka.ProducerID(m.rng.IntN(4))
		b.SetProducer(id, 0, m.seq[id], false)
		m.seq[id] = sequenceAfter(m.seq[id], b.Count())
	}
	return b
}

func (m *model) with(bs ...record.Batch) outcome {
	o := m.now
	o.batches = slices.Clone(o.batches)
	for _, b := range bs {
		o.batches = append(o.batches, b)
		o.maxEnd = b.NextOffset()
	}
	return o
}

func (m *model) append() {
	b := m.newBatch()
	b.SetBaseOffset(m.end())
	b.SetLeaderEpoch(m.epoch)
	want := m.with(bytes.Clone(b))
	m.begin(want, "append [%d, %d)", b.BaseOffset(), b.NextOffset())
	b.SetBaseOffset(0)
	a, err := m.log.Append(m.epoch, b, m.at)
	if err != nil || a.Base != m.end() || a.End != want.maxEnd {
		m.fatal("append: %+v, %v; want end %d", a, err, want.maxEnd)
	}
	m.finish()
}

func (m *model) appendReplicated() {
	var bs []record.Batch
	var all []byte
	at := m.end()
	for range 1 + m.rng.IntN(3) {
		b := m.newBatch()
		b.SetBaseOffset(at)
		b.SetLeaderEpoch(m.epoch)
		at = b.NextOffset()
		bs, all = append(bs, b), append(all, b...)
	}
	m.begin(m.with(bs...), "append replicated [%d, %d)", m.end(), at)
	if end, err := m.log.AppendReplicated(all, m.at); err != nil || end != at {
		m.fatal("append replicated: %d, %v; want %d", end, err, at)
	}
	m.finish()
}

func (m *model) syncRound() {
	m.begin(m.now, "sync round")
	m.dir.syncer.runAll()
	m.finish()
	if got := m.log.StoredEnd(); got != m.end() {
		m.fatal("stored end %d after a round, want %d", got, m.end())
	}
	m.ack(m.end())
}

func (m *model) truncate() {
	lo := max(m.hw, m.now.startLo)
	to := lo + kafka.Offset(m.rng.Int64N(int64(m.end()-lo)+1))
	next := m.now
	next.batches = nil
	next.maxEnd = m.now.startLo
	for _, b := range m.now.batches {
		if b.NextOffset() <= to {
			next.batches = append(next.batches, b)
			next.maxEnd = b.NextOffset()
		}
	}
	if to < m.end() && next.maxEnd < m.now.startLo {
		return // a start in the middle of a batch that would go, and producers that a crash may forget
	}
	if to >= m.end() {
		next = m.now
	}
	m.mu.Lock()
	// From here on what is behind the cut may be gone.
	m.acked = min(m.acked, next.maxEnd)
	m.now.minEnd = m.acked
	m.mu.Unlock()
	next.minEnd = m.acked
	m.begin(next, "truncate to %d", to)
	if err := m.log.TruncateTo(to); err != nil {
		m.fatal("truncate to %d: %v", to, err)
	}
	m.finish()
	m.resequence()
}

// resequence makes the producers go on from what the log holds.
func (m *model) resequence() {
	m.seq = map[kafka.ProducerID]int32{}
	for _, b := range m.now.batches {
		if b.ProducerID() >= 0 {
			m.seq[b.ProducerID()] = sequenceAfter(b.LastSequence(), 1)
		}
	}
}

func (m *model) advance() {
	to := m.now.startLo + kafka.Offset(m.rng.Int64N(int64(m.end()-m.now.startLo)+1))
	next := m.now
	next.startLo, next.startHi = to, to
	m.now.startHi = to
	m.begin(next, "advance start to %d", to)
	if err := m.log.AdvanceStart(to); err != nil {
		m.fatal("advance start to %d: %v", to, err)
	}
	m.finish()
}

func (m *model) retain() {
	m.hw = max(m.hw, m.now.startLo+kafka.Offset(m.rng.Int64N(int64(m.acked-min(m.acked, m.now.startLo))+1)))
	m.hw = min(m.hw, m.end())
	next := m.now
	m.mu.Lock()
	m.now.startHi = max(m.now.startHi, m.hw)
	next.startHi = m.now.startHi
	m.mu.Unlock()
	m.begin(next, "retention below %d", m.hw)
	start, err := m.log.ApplyRetention(RetentionPolicy{Bytes: 1500}, m.hw, m.at)
	if err != nil || start < m.now.startLo || start > max(m.hw, m.now.startLo) {
		m.fatal("retention: start %d, %v; was %d, high watermark %d", start, err, m.now.startLo, m.hw)
	}
	m.during.startLo, m.during.startHi = start, start
	m.finish()
}

func (m *model) savePoints() {
	m.begin(m.now, "save points")
	if err := m.dir.SavePoints(func(kafka.TopicPartition) kafka.Offset { return m.hw }); err != nil {
		m.fatal("save points: %v", err)
	}
	m.finish()
}

func (m *model) reset() {
	start := kafka.Offset(m.rng.IntN(500))
	m.mu.Lock()
	m.acked, m.hw = 0, start // the old log may be gone from here on
	m.now.minEnd = 0
	m.mu.Unlock()
	next := outcome{startLo: start, startHi: start, minEnd: 0, maxEnd: start}
	m.begin(next, "reset to %d", start)
	if err := m.log.Reset(start); err != nil {
		m.fatal("reset: %v", err)
	}
	m.finish()
	m.ack(start)
	m.resequence()
}

func (m *model) reopenClean() {
	m.begin(m.now, "clean restart")
	if err := m.dir.Close(CloseOptions{Clean: true}); err != nil {
		m.fatal("close: %v", err)
	}
	m.dir = newTestDir(m.t, m.fs)
	if _, clean := m.dir.CleanShutdown(); !clean {
		m.fatal("no clean-shutdown marker")
	}
	reads := 0
	m.fs.Hook(countSegmentReads(&reads))
	m.log = openTestLog(m.t, m.dir, m.opts)
	m.fs.Hook(nil)
	if reads > 0 && testKeys == nil { // the frames of an encrypted segment are walked over
		m.fatal("%d reads of segments after a clean stop", reads)
	}
	m.finish()
	m.ack(m.log.StoredEnd())
	if got := m.log.StoredEnd(); got != m.end() {
		m.fatal("stored end %d after a clean restart, want %d", got, m.end())
	}
}

func countSegmentReads(reads *int) func(systest.Op) error {
	return func(op systest.Op) error {
		if op.Kind == systest.OpRead && len(op.Name) > 4 && op.Name[len(op.Name)-4:] == logSuffix {
			*reads++
		}
		return nil
	}
}

// outcomes are what a crash at this moment may leave.
func (m *model) outcomes() []outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := []outcome{m.now}
	if m.during != nil {
		all = append(all, *m.during)
	}
	return slices.Clone(all)
}

// check compares a log with the outcomes.
func (m *model) check(when string, l *Log, outcomes []outcome, damageAllowed bool) {
	m.t.Helper()
	var errs []error
	for _, o := range outcomes {
		err := o.check(l, damageAllowed, 300+len(m.trace)%1000)
		if err == nil {
			return
		}
		errs = append(errs, err)
	}
	m.fatal("%s: %v", when, errors.Join(errs...))
}

func (o outcome) check(l *Log, damageAllowed bool, chunk int) error {
	start, end := l.Start(), l.End()
	if l.Damaged() != nil && !damageAllowed {
		return l.Damaged()
	}
	if start < o.startLo || start > o.startHi || end > max(o.maxEnd, start) || end < o.minEnd {
		return fmt.Errorf("log is [%d, %d); want a start in [%d, %d] and an end in [%d, %d]", start, end, o.startLo, o.startHi, o.minEnd, o.maxEnd)
	}
	if hw := l.recovered.HighWatermark; l.Damaged() == nil && hw > max(end, start) && l.mu.cuts == 0 {
		return fmt.Errorf("high watermark %d above the end %d", hw, end)
	}
	got, err := readAll(l, end, chunk)
	if err != nil {
		return err
	}
	var want []byte
	var inLog []record.Batch
	for _, b := range o.batches {
		if b.NextOffset() <= end {
			inLog = append(inLog, b)
			if b.NextOffset() > start {
				want = append(want, b...)
			}
		}
	}
	if o.compacted == 0 && !bytes.Equal(got, want) {
		return fmt.Errorf("read %d bytes of [%d, %d), want %d, or they differ", len(got), start, end, len(want))
	}
	if o.compacted > 0 {
		if err := o.checkCompacted(got, want); err != nil {
			return fmt.Errorf("compacted up to %d: %w", o.compacted, err)
		}
	}
	if start == end {
		return nil
	}
	if err := checkProducers(l, inLog); err != nil {
		return err
	}
	if err := checkEpochs(l, inLog, start, end); err != nil {
		return err
	}
	return checkTimes(l, splitAll(got), start, end)
}

func checkProducers(l *Log, batches []record.Batch) error {
	want := newProducers()
	for _, b := range batches {
		want.note(headerOf(b), 0)
	}
	got := l.Producers()
	if len(got) != len(want.byID) {
		return fmt.Errorf("%d producers, want %d", len(got), len(want.byID))
	}
	for _, p := range got {
		s := want.byID[p.ID]
		if s == nil || p.Epoch != s.epoch || !slices.Equal(p.Batches, s.batches[:s.count]) {
			return fmt.Errorf("producer %d is %+v, want %+v", p.ID, p, s)
		}
	}
	return nil
}

func checkEpochs(l *Log, batches []record.Batch, start, end kafka.Offset) error {
	for _, b := range batches {
		if b.BaseOffset() < start {
			continue
		}
		if e := l.EpochAt(b.BaseOffset()); e != b.LeaderEpoch() {
			return fmt.Errorf("epoch %d at %d, want %d", e, b.BaseOffset(), b.LeaderEpoch())
		}
		last := end
		for _, o := range batches {
			if o.LeaderEpoch() > b.LeaderEpoch() {
				last = min(last, o.BaseOffset())
			}
		}
		if got := l.EpochEndFor(b.LeaderEpoch()); got.Epoch != b.LeaderEpoch() || got.End > last {
			return fmt.Errorf("epoch %d ends at %+v, want %d", b.LeaderEpoch(), got, last)
		}
	}
	return nil
}

// checkTimes compares time lookups with a scan of all records.
func checkTimes(l *Log, batches []record.Batch, start, end kafka.Offset) error {
	best := TimestampOffset{TimestampMs: -1}
	var all []TimestampOffset
	for _, b := range batches {
		for r, err := range b.Records(0) {
			if err != nil {
				return err
			}
			at := TimestampOffset{b.Timestamp(&r), b.BaseOffset() + kafka.Offset(r.OffsetDelta), b.LeaderEpoch()}
			if b.NextOffset() > start && at.TimestampMs > best.TimestampMs {
				best = at
			}
			if at.Offset >= start {
				all = append(all, at)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	probe := all[len(all)/2].TimestampMs
	i := slices.IndexFunc(all, func(o TimestampOffset) bool { return o.TimestampMs >= probe })
	if got, ok, err := l.OffsetForTime(probe, end); err != nil || !ok || got != all[i] {
		return fmt.Errorf("time %d is at %+v, %v, %v; want %+v", probe, got, ok, err, all[i])
	}
	if got, ok, err := l.MaxTimestamp(end); err != nil || !ok || got != best {
		return fmt.Errorf("max timestamp is %+v, %v, %v; want %+v", got, ok, err, best)
	}
	return nil
}

// crashNow takes an image of the disk as a crash would leave it and checks what a start makes of it: once, once more, and after
// a crash in the middle of the recovery (P21).
func (m *model) crashNow(mode systest.CrashMode, when string) {
	m.crashes++
	image := m.fs.Clone(mode)
	outcomes := m.outcomes()
	damageAllowed := mode == systest.Random
	what := fmt.Sprintf("%s, %s", when, mode)

	after := systest.LoseAll
	if m.opts.Policy == Replicated {
		after = systest.KillProcess // a power cut may take what was reported
	}
	second := image.Clone(systest.KillProcess)
	second.CrashAt(1 + int64(m.rng.IntN(8)))
	if d, err := tryTestDir(second); err == nil {
		d.OpenLog(testTP, m.opts)
	}
	interrupted := m.reopenAndCheck(second.Crash(after), what+", crashed in recovery", outcomes, damageAllowed)
	first := m.reopenAndCheck(image, what, outcomes, damageAllowed)
	again := m.reopenAndCheck(image.Crash(after), what+", second recovery", outcomes, damageAllowed)
	if again != first || (mode != systest.KillProcess && interrupted != first) {
		m.fatal("%s: recovered to %s, then to %s, and after a crash in recovery to %s", what, first, again, interrupted)
	}
}

func (m *model) reopenAndCheck(fsys *systest.FS, when string, outcomes []outcome, damageAllowed bool) string {
	m.t.Helper()
	d, err := tryTestDir(fsys)
	if err != nil {
		m.fatal("%s: open directory: %v", when, err)
	}
	o := m.opts
	o.OnStored = nil
	l, err := d.OpenLog(testTP, o)
	if err != nil {
		m.fatal("%s: open log: %v", when, err)
	}
	m.check(when, l, outcomes, damageAllowed)
	d.syncer.runAll()
	if got := l.StoredEnd(); l.Damaged() == nil && got != l.End() {
		m.fatal("%s: stored end %d after the sync that follows recovery, want %d", when, got, l.End())
	}
	return fmt.Sprintf("[%d, %d) damaged %t", l.Start(), l.End(), l.Damaged() != nil)
}

// modelConfigs are odd on purpose: rolls at almost every batch, by age, hardly ever; every batch indexed, hardly any.
var modelConfigs = []struct {
	name    string
	options LogOptions
	crashes []systest.CrashMode
}{
	{"small", smallLog, []systest.CrashMode{systest.LoseAll, systest.KeepAll, systest.Random, systest.KillProcess}},
	{"tiny", LogOptions{SegmentBytes: 700, IndexInterval: 1}, []systest.CrashMode{systest.LoseAll, systest.KillProcess}},
	{"by age", LogOptions{SegmentAge: 3 * time.Second, IndexInterval: 300}, []systest.CrashMode{systest.LoseAll, systest.KillProcess}},
	{"one segment", LogOptions{}, []systest.CrashMode{systest.LoseAll, systest.KillProcess}},
	// `replicated` promises only to survive a killed process.
	{"replicated", LogOptions{Policy: Replicated, SegmentBytes: 1000, IndexInterval: 1}, []systest.CrashMode{systest.KillProcess}},
}

// TestModel: the log behaves like a slice under random operations and clean restarts.
func TestModel(t *testing.T) {
	for _, c := range modelConfigs {
		for seed := *modelSeed; seed < *modelSeed+uint64(*modelRuns)*4; seed++ {
			m := newModel(t, seed, c.options)
			m.trace = append(m.trace, fmt.Sprintf("%s, seed %d", c.name, seed))
			for range *modelOps {
				m.step()
			}
		}
	}
}

// TestP21_CrashAtEveryFileOperation: a crash at each operation that changes the disk, in four modes, loses nothing that was
// reported as stored, invents nothing, and recovers to the same state twice. Only a power cut that keeps any subset of the
// unsynced pages may lead to damage (a lost page before a kept one); what was stored is readable even then.
func TestP21_CrashAtEveryFileOperation(t *testing.T) {
	for i, c := range modelConfigs {
		runs := uint64(*modelRuns)
		if i > 0 {
			runs = (runs + 1) / 3
		}
		for seed := *modelSeed; seed < *modelSeed+runs; seed++ {
			m := crashModel(t, seed, c.options, c.crashes)
			t.Logf("%s, seed %d: %d crashes over %d operations, %d compactions removed %d records", c.name, seed, m.crashes, m.fs.Ops(), m.compactions, m.removed)
		}
	}
}

// crashModel runs the model with crashes at every operation.
func crashModel(t *testing.T, seed uint64, o LogOptions, crashes []systest.CrashMode) *model {
	m := newModel(t, seed, o)
	m.trace = append(m.trace, fmt.Sprintf("%+v, seed %d", o, seed))
	hook := m.crashHook(crashes)
	for range *modelOps {
		m.fs.Hook(hook) // a clean restart takes it away
		m.step()
	}
	m.fs.Hook(nil)
	return m
}

// crashHook takes a crash image before each operation that changes something.
func (m *model) crashHook(modes []systest.CrashMode) func(systest.Op) error {
	var one sync.Mutex
	return func(op systest.Op) error {
		if op.N == 0 {
			return nil
		}
		one.Lock()
		defer one.Unlock()
		for _, mode := range modes {
			m.crashNow(mode, op.String())
		}
		return nil
	}
}
