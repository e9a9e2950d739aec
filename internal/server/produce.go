package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/config"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/metadata"
	"strandline.dev/internal/record"
	"strandline.dev/internal/replica"
)

const (
	// produceByID is the first Produce version that names topics by id, produceLeaderHints the first that can carry the leader's
	// address, produceZstd the first whose clients all read zstd.
	produceByID        = 13
	produceLeaderHints = 10
	produceZstd        = 7
)

// publish is one Produce request: what was accepted of it, and the answer under construction. It is the request's Pending.
type publish struct {
	server *Server
	call   *Call
	req    *kmsg.ProduceRequest
	resp   *kmsg.ProduceResponse
	items  []replica.AppendItem
	slots  []slot // where in resp the answer to each item goes
	wait   *replica.Produce
	failed bool // a partition has an error
	unable bool // a partition has an error that is the cluster's
	parked bool // it waited for replicas
	wish   wish
	// elsewhere: by the Image another node leads one of the items, or this one does not know yet that it does.
	elsewhere bool

	// One partition is the common case and costs no further allocation.
	one struct {
		item      [1]replica.AppendItem
		slot      [1]slot
		topic     [1]kmsg.ProduceResponseTopic
		partition [1]kmsg.ProduceResponseTopicPartition
	}
}

// slot is a partition's place in the response.
type slot struct {
	topic, partition int
	name             string
	bytes            int
}

// handleProduce validates the batches (it touches no state), has them appended, and parks the answer until they are committed (I1).
func (s *Server) handleProduce(ctx context.Context, call *Call) Reply {
	req := call.Request.(*kmsg.ProduceRequest)
	p := &publish{server: s, call: call, req: req, resp: reply[*kmsg.ProduceResponse](req)}
	p.readWish()
	p.prepare()
	if p.elsewhere {
		p.awaitLead(ctx)
	}
	timeout := min(max(time.Duration(req.TimeoutMillis)*time.Millisecond, time.Millisecond), produceWaitMax)
	if len(p.items) == 0 {
		return p.answer(nil)
	}
	p.wait = s.cfg.Replicas.Append(p.items, req.Acks, timeout)
	select {
	case <-p.wait.Ready():
		return p.answer(p.wait.Results())
	default:
		p.parked = true
		return Reply{Pending: p}
	}
}

// Ready is closed when every partition is committed or has failed.
func (p *publish) Ready() <-chan struct{} { return p.wait.Ready() }

// Deadline is the request's timeout_ms.
func (p *publish) Deadline() time.Time { return p.wait.Deadline() }

// Complete answers; late turns what is still parked into REQUEST_TIMED_OUT.
func (p *publish) Complete(late bool) (Reply, bool) {
	if late {
		p.wait.Expire()
	}
	return p.answer(p.wait.Results()), true
}

// Cancel drops the wait; what was appended stays.
func (p *publish) Cancel() { p.wait.Cancel() }

// prepare builds a place in the response for every partition, and an item for every batch that may be appended.
func (p *publish) prepare() {
	req := p.req
	img, nowMs := p.server.cfg.Image(), p.server.cfg.Wall.Now().UnixMilli()
	p.elsewhere = img.Version() > p.server.applied.Load()
	total := 0
	for i := range req.Topics {
		total += len(req.Topics[i].Partitions)
	}
	p.room(total)
	repeated := repeatedPartitions(req, total)
	for i := range req.Topics {
		t, out := &req.Topics[i], &p.resp.Topics[i]
		out.Topic, out.TopicID = t.Topic, t.TopicID
		if total > 1 {
			out.Partitions = make([]kmsg.ProduceResponseTopicPartition, 0, len(t.Partitions))
		}
		target := p.target(img, t)
		for j := range t.Partitions {
			part := &t.Partitions[j]
			times, again := repeated[producedPartition{t.Topic, t.TopicID, part.Partition}]
			if again {
				repeated[producedPartition{t.Topic, t.TopicID, part.Partition}]++
				if times > 0 {
					continue // every partition is answered exactly once
				}
			}
			out.Partitions = append(out.Partitions, newProduced(part.Partition))
			at := slot{topic: i, partition: len(out.Partitions) - 1, name: target.name}
			no := refusal{kafka.InvalidRequest, "the partition is in the request more than once"}
			switch {
			case total > partitionsMax:
				no = refusal{kafka.PolicyViolation, "too many partitions in one request"}
			case !again:
				no = p.admit(&target, part, at, nowMs)
			}
			p.refuse(at, no)
		}
	}
}

// room makes place for total partitions.
func (p *publish) room(total int) {
	if total == 1 && len(p.req.Topics) == 1 {
		p.items, p.slots, p.resp.Topics = p.one.item[:0], p.one.slot[:0], p.one.topic[:]
		p.resp.Topics[0].Partitions = p.one.partition[:0]
		return
	}
	p.items, p.slots = make([]replica.AppendItem, 0, min(total, partitionsMax)), make([]slot, 0, min(total, partitionsMax))
	p.resp.Topics = make([]kmsg.ProduceResponseTopic, len(p.req.Topics))
}

func newProduced(partition int32) kmsg.ProduceResponseTopicPartition {
	o := kmsg.NewProduceResponseTopicPartition()
	o.Partition, o.BaseOffset, o.LogAppendTime, o.LogStartOffset = partition, int64(kafka.NoOffset), -1, int64(kafka.NoOffset)
	return o
}

// producedPartition is a partition as a Produce request names it.
type producedPartition struct {
	topic     string
	id        kafka.TopicID
	partition int32
}

// repeatedPartitions returns the partitions that are named more than once (K36), each with 0; nil when there are none.
func repeatedPartitions(req *kmsg.ProduceRequest, total int) map[producedPartition]int {
	if total < 2 {
		return nil
	}
	var once seen[producedPartition]
	var repeated map[producedPartition]int
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			k := producedPartition{t.Topic, t.TopicID, t.Partitions[j].Partition}
			if !once.add(k) {
				continue
			}
			if repeated == nil {
				repeated = map[producedPartition]int{}
			}
			repeated[k] = 0
		}
	}
	return repeated
}

// target is the topic that part of a publish goes to: its rules, or why nothing may go there.
type target struct {
	topic *metadata.Topic
	name  string // empty when there is no such topic
	rules record.Rules
	// codec is what the topic stores; recompress is false when it stores what comes.
	codec      record.Codec
	recompress bool
	stamped    bool // LogAppendTime
	// idHeader is where records carry their ids; empty when the topic remembers none.
	idHeader string
	refused  refusal
}

func (p *publish) target(img *metadata.Image, t *kmsg.ProduceRequestTopic) target {
	if x := p.req.TransactionID; x != nil && !p.server.may(p.call, kmsg.ACLOperationWrite, kmsg.ACLResourceTypeTransactionalId, *x) {
		return target{refused: refusal{code: kafka.TransactionalIDAuthorizationFailed}}
	}
	topic, code := p.server.findTopicFor(p.call, kmsg.ACLOperationWrite, img, topicRef{t.Topic, t.TopicID, p.req.Version >= produceByID})
	if topic == nil {
		return target{refused: refusal{code, absent(code)}} // without a name: only those of topics may become labels of metrics
	}
	out := target{topic: topic, name: topic.Name}
	if (topic.Internal || reservedTopic(topic.Name)) && !canaryOf(p.call, topic.Name) {
		out.refused = refusal{kafka.InvalidTopicException, "the topic belongs to the broker"}
		return out
	}
	cfg := p.server.topicConfig(topic)
	out.refused = weakAcks(p.req.Acks, cfg.AcksMinimum)
	out.stamped = cfg.TimestampType == config.LogAppendTime
	out.rules = record.Rules{
		MaxBatchBytes: cfg.MaxBatchBytes, MaxRecordBytes: cfg.MaxRecordBytes,
		RequireKey:      slices.Contains(cfg.CleanupPolicy, "compact"),
		ZstdAllowed:     p.req.Version >= produceZstd,
		TimestampBefore: cfg.TimestampBefore, TimestampAfter: cfg.TimestampAfter,
		LogAppendTime: out.stamped,
	}
	if cfg.DedupWindow > 0 {
		out.idHeader = cfg.DedupHeader
	}
	if codec, err := record.ParseCodec(cfg.CompressionType); err == nil { // "producer" is no codec: store as sent
		out.codec, out.recompress = codec, true
	}
	return out
}

// weakAcks refuses acks that do not exist or are below what the topic demands.
func weakAcks(acks int16, minimum string) refusal {
	switch {
	case acks < -1 || acks > 1:
		return refusal{kafka.InvalidRequiredAcks, "acks must be -1 (all), 0 or 1"}
	case minimum == "all" && acks != -1, minimum == "1" && acks == 0:
		return refusal{kafka.InvalidRequiredAcks, "the topic takes only acks=" + minimum + " or stronger (strandline.acks.minimum)"}
	}
	return refusal{}
}

// admit validates one partition's batch and makes it an item. It changes only the request's own bytes.
func (p *publish) admit(to *target, part *kmsg.ProduceRequestTopicPartition, at slot, nowMs int64) refusal {
	if to.refused.code != 0 {
		return to.refused
	}
	if part.Partition < 0 || int(part.Partition) >= len(to.topic.Partitions) {
		return refusal{kafka.UnknownTopicOrPartition, "no such partition"}
	}
	if no := p.withoutWindow(at, to); no.code != 0 {
		return no
	}
	to.rules.NowMs = nowMs
	var facts record.Facts
	batch, err := record.Single(part.Records)
	if err == nil {
		sent := batch
		batch, facts, err = p.server.judge(sent, to)
		p.clientClock(sent, err, nowMs)
	}
	if err != nil {
		p.refuseRecord(at, err)
		return refusal{p.server.code(err, "validate a batch"), err.Error()}
	}
	if to.stamped {
		batch.SetAppendTime(nowMs)
	}
	ids, err := p.server.recordIDs(batch, facts, to)
	if err != nil {
		return refusal{p.server.code(err, "read record ids"), err.Error()}
	}
	at.bytes = len(batch)
	p.elsewhere = p.elsewhere || to.topic.Partitions[part.Partition].Leader != p.server.cfg.Node
	p.items = append(p.items, replica.AppendItem{
		TP: kafka.TopicPartition{Topic: to.topic.ID, Partition: part.Partition}, Batch: batch, IDs: ids, IDHeader: to.idHeader,
	})
	p.slots = append(p.slots, at)
	return refusal{}
}

func (p *publish) at(sl slot) *kmsg.ProduceResponseTopicPartition {
	return &p.resp.Topics[sl.topic].Partitions[sl.partition]
}

// refuseRecord names the record at fault, where one is (v8+).
func (p *publish) refuseRecord(at slot, err error) {
	invalid := (*record.InvalidError)(nil)
	if !errors.As(err, &invalid) || invalid.RecordIndex < 0 {
		return
	}
	e := kmsg.NewProduceResponseTopicPartitionErrorRecord()
	e.RelativeOffset, e.ErrorMessage = int32(invalid.RecordIndex), text(invalid.Error())
	p.at(at).ErrorRecords = append(p.at(at).ErrorRecords, e)
}

func (p *publish) refuse(at slot, no refusal) {
	if no.code == kafka.None {
		return
	}
	p.failed, p.unable = true, p.unable || ours(no.code)
	o := p.at(at)
	o.ErrorCode, o.ErrorMessage = int16(no.code), text(no.message)
	p.server.cfg.Metrics.ProduceFailed(at.name, p.call.ClientID, no.code.String())
}

// answer fills in what became of the items.
func (p *publish) answer(results []replica.AppendResult) Reply {
	var leaders hints
	stored := 0
	for i := range results {
		r, at := &results[i], p.slots[i]
		p.judged(at, r)
		if errors.Is(r.Err, replica.ErrRepeats) {
			p.repeats(at, p.items[i].Batch, r.Err)
			continue
		}
		if r.Err != nil {
			p.fail(at, i, r, &leaders)
			continue
		}
		stored += at.bytes
		o := p.at(at)
		o.BaseOffset, o.LogAppendTime, o.LogStartOffset = int64(r.Base), r.TimestampMs, int64(r.LogStart)
	}
	p.server.cfg.Metrics.ProduceBytes.Add(float64(stored))
	p.server.cfg.Metrics.Publishes.Served(p.unable)
	p.slow(results)
	if !p.failed {
		p.server.cfg.Metrics.ProduceAck.Observe(time.Since(p.call.Received).Seconds())
	}
	slow := p.slowdown()
	if p.req.Acks == 0 {
		return Reply{Close: p.failed, Throttle: slow} // closing is the only way to tell
	}
	p.resp.Brokers, p.resp.ThrottleMillis = leaders.produce(), int32(slow/time.Millisecond)
	return Reply{Response: p.resp, Throttle: slow}
}

// slowdown is how long this client is not to be read from because little room is left below the disk limit (R89).
func (p *publish) slowdown() time.Duration {
	if p.wait == nil {
		return 0 // nothing was to be appended
	}
	slow := p.server.cfg.Logs.Slowdown().Truncate(time.Millisecond)
	if slow > 0 {
		p.server.cfg.Metrics.Throttled("disk", p.call.Principal.Name, p.call.ClientID, slow)
	}
	return slow
}

// repeats answers a batch whose records are all stored already and that no single offset answers. Nothing failed, and every client is to take it
// so: idempotent ones know a code for it. To librdkafka without idempotence that code is an error, but an answer without an offset is none.
func (p *publish) repeats(at slot, b record.Batch, err error) {
	if b.ProducerID() == kafka.NoProducerID {
		return // as it was made: no error, no offset
	}
	o := p.at(at)
	o.ErrorCode, o.ErrorMessage = int16(p.server.code(err, "append")), text(err.Error())
}

func (p *publish) fail(at slot, item int, r *replica.AppendResult, leaders *hints) {
	tp := p.items[item].TP
	code := p.server.partitionCode(r.Err, tp, p.req.Version >= produceByID, "append")
	p.refuse(at, refusal{code, r.Err.Error()})
	p.server.sentAway(code)
	if code != kafka.NotLeaderOrFollower {
		return
	}
	node, epoch := p.server.newestLeader(tp, r.Leader, r.LeaderEpoch)
	p.unable = p.unable || node == kafka.NoNode
	if node == kafka.NoNode || p.req.Version < produceLeaderHints {
		return
	}
	o := p.at(at)
	o.CurrentLeader.LeaderID, o.CurrentLeader.LeaderEpoch = int32(node), int32(epoch)
	leaders.add(p.server, p.call, node)
}
