package rest

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
	"strandline.dev/internal/wire"
)

// stored is where a record is.
type stored struct {
	Partition   int32 `json:"partition"`
	Offset      int64 `json:"offset"`
	LeaderEpoch int32 `json:"leaderEpoch" doc:"the epoch of the leader that answered"`
	Duplicate   bool  `json:"duplicate" doc:"the record was stored before under its recordId, at this offset"`
}

// result is the outcome of one record of a batch: where it is, or the problem.
type result struct {
	*stored
	Problem *problem `json:"problem,omitempty"`
}

// placeOrProblem describes a result: huma does not see what is embedded.
type placeOrProblem struct {
	Partition   int32    `json:"partition,omitempty"`
	Offset      int64    `json:"offset,omitempty"`
	LeaderEpoch int32    `json:"leaderEpoch,omitempty"`
	Duplicate   bool     `json:"duplicate,omitempty"`
	Problem     *problem `json:"problem,omitempty" doc:"instead of the place, for a record that is not stored"`
}

// Schema implements huma.SchemaProvider.
func (result) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[placeOrProblem](), true, "Result")
}

// results is the answer to a batch, in the order of its records.
type results struct {
	Results []result `json:"results"`
}

// publication is one publish on its way.
type publication struct {
	door     *door
	topic    string
	list     []draft
	count    int32  // of the topic's partitions; 0: unknown here
	idHeader string // of the topic
	outcomes []result
	parts    map[int32]*part
}

// part is what goes to one partition.
type part struct {
	partition int32
	leader    kafka.NodeID
	builder   *record.Builder
	records   []int // of the publication, in the order of the batch
	ids       bool
}

// publishOne is POST /v1/topics/{topic}/partitions/{partition}/records: this node must lead the partition.
func (d *door) publishOne(w http.ResponseWriter, r *http.Request) {
	partition, err := strconv.ParseInt(r.PathValue("partition"), 10, 32)
	if err != nil || partition < 0 {
		d.writeError(w, invalid("path.partition", "is not a number from 0 to 2147483647"))
		return
	}
	to := int32(partition)
	d.publish(w, r, &to)
}

// publishAny is POST /v1/topics/{topic}/records: the partition follows from the key, and its leader gets the records.
func (d *door) publishAny(w http.ResponseWriter, r *http.Request) { d.publish(w, r, nil) }

func (d *door) publish(w http.ResponseWriter, r *http.Request, to *int32) {
	list, many, timeout, err := d.readPublish(r, to == nil)
	if err != nil {
		d.writeError(w, err)
		return
	}
	p, err := d.prepare(r.PathValue("topic"), list, many, to)
	if err != nil {
		d.writeError(w, err)
		return
	}
	// The margin lets the leader's own answer, which says more, come before this door gives up.
	ctx, cancel := context.WithTimeout(r.Context(), timeout+time.Second)
	defer cancel()
	p.send(ctx, timeout)
	p.answer(w, many)
}

// readPublish reads parameters, headers and body.
func (d *door) readPublish(r *http.Request, manyAllowed bool) (list []draft, many bool, timeout time.Duration, err error) {
	body, _ := r.Body.(*held)
	raw := r.Header.Get("Content-Type") == "application/octet-stream"
	allowed := []string{"timeoutMs"}
	if raw {
		allowed = append(allowed, "routingKey", "schemaVersion")
	}
	params, err := query(r, allowed...)
	if err != nil {
		return nil, false, 0, err
	}
	timeout = publishWaitDefault
	if text, ok := params["timeoutMs"]; ok {
		ms, err := strconv.ParseUint(text, 10, 63)
		if err != nil || ms == 0 {
			return nil, false, 0, invalid("query.timeoutMs", "is not a number above 0")
		}
		timeout = time.Duration(min(ms, uint64(waitMax/time.Millisecond))) * time.Millisecond
	}
	if raw {
		list = []draft{rawDraft(body.b, params)}
	} else {
		read, err := readDrafts(body.b, manyAllowed)
		if err != nil {
			return nil, false, 0, err
		}
		list, many = read.list, read.many
	}
	return list, many, timeout, alias(r, list, many)
}

// alias takes Idempotency-Key for the record id.
func alias(r *http.Request, list []draft, many bool) error {
	keys := r.Header.Values("Idempotency-Key")
	switch {
	case len(keys) == 0:
		return nil
	case many:
		return invalid("header.Idempotency-Key", "is for one record; give each record of a batch its recordId")
	case len(keys) > 1 || keys[0] == "" || len(keys[0]) > recordIDMax:
		return invalid("header.Idempotency-Key", "is one text of 1 to "+strconv.Itoa(recordIDMax)+" bytes")
	case list[0].id != "" && list[0].id != keys[0]:
		return invalid("header.Idempotency-Key", "is not the recordId of the body")
	}
	list[0].id = keys[0]
	return nil
}

// prepare chooses partitions and builds their batches. What is wrong with the topic the server says, which knows who may see it.
func (d *door) prepare(topic string, list []draft, many bool, to *int32) (*publication, error) {
	s, err := d.broker()
	if err != nil {
		return nil, err
	}
	p := &publication{door: d, topic: topic, list: list, parts: map[int32]*part{}, outcomes: make([]result, len(list))}
	view := s.Topic(topic)
	p.count, p.idHeader = int32(len(view.Partitions)), view.RecordIDHeader
	if err := check(list, many, p.idHeader); err != nil {
		return nil, err
	}
	any, now := d.keyless.Add(1), d.cfg.Wall.Now().UnixMilli()
	for i := range list {
		n := noPartition
		switch {
		case to != nil:
			n = *to
		case p.count > 0:
			n = list[i].partitionOf(p.count, any)
		}
		q := p.parts[n]
		if q == nil {
			q = &part{partition: n, leader: d.cfg.Node, builder: record.NewBuilder(record.None)}
			if to == nil && n < p.count && view.Partitions[n].Leader != kafka.NoNode {
				q.leader = view.Partitions[n].Leader
			}
			p.parts[n] = q
		}
		q.records, q.ids = append(q.records, i), q.ids || list[i].id != ""
		q.builder.Add(now, list[i].key, list[i].value, list[i].allHeaders(p.idHeader))
	}
	return p, nil
}

// send publishes each leader's part to it, and waits for all.
func (p *publication) send(ctx context.Context, timeout time.Duration) {
	type to struct {
		leader kafka.NodeID
		ids    bool
	}
	requests := map[to][]*part{}
	for _, q := range p.parts {
		k := to{q.leader, q.ids}
		requests[k] = append(requests[k], q)
	}
	var all sync.WaitGroup
	for k, parts := range requests {
		if len(requests) == 1 {
			p.sendTo(ctx, k.leader, k.ids, timeout, parts)
			break
		}
		all.Go(func() { p.sendTo(ctx, k.leader, k.ids, timeout, parts) })
	}
	all.Wait()
}

func (p *publication) sendTo(ctx context.Context, leader kafka.NodeID, ids bool, timeout time.Duration, parts []*part) {
	req := kmsg.NewPtrProduceRequest()
	req.SetVersion(producedByName)
	req.Acks, req.TimeoutMillis = -1, int32(timeout/time.Millisecond)
	asked := byte(0)
	if ids {
		asked = 1
	}
	req.UnknownTags.Set(wire.TagOutcome, []byte{asked})
	t := kmsg.NewProduceRequestTopic()
	t.Topic = p.topic
	for _, q := range parts {
		one := kmsg.NewProduceRequestTopicPartition()
		one.Partition, one.Records = q.partition, q.builder.Build()
		t.Partitions = append(t.Partitions, one)
	}
	req.Topics = append(req.Topics, t)
	resp, err := ask[*kmsg.ProduceResponse](ctx, p.door, leader, req)
	if err != nil {
		for _, q := range parts {
			p.failAll(q, asProblem(err))
		}
		return
	}
	p.take(resp, parts)
	p.holdBack(ctx, resp, parts)
}

// holdBack waits before a publish that was taken is answered, for as long as its leader wants because little room is left on the disk (R89).
func (p *publication) holdBack(ctx context.Context, resp *kmsg.ProduceResponse, parts []*part) {
	taken := slices.ContainsFunc(parts, func(q *part) bool {
		return slices.ContainsFunc(q.records, func(i int) bool { return p.outcomes[i].stored != nil })
	})
	if !taken || resp.ThrottleMillis <= 0 {
		return
	}
	wait := time.NewTimer(min(time.Duration(resp.ThrottleMillis)*time.Millisecond, holdBackMax))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}

// producedByName is the newest Produce version that names topics by name.
const producedByName = 12

// take reads the answer of one leader.
func (p *publication) take(resp *kmsg.ProduceResponse, parts []*part) {
	answered := map[int32]*kmsg.ProduceResponseTopicPartition{}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			one := &resp.Topics[i].Partitions[j]
			answered[one.Partition] = one
		}
	}
	for _, q := range parts {
		one := answered[q.partition]
		if one == nil {
			p.failAll(q, failed(kafka.UnknownServerError, nil))
			continue
		}
		o := outcomeOf(one)
		if code := kafka.ErrorCode(one.ErrorCode); code != kafka.None && code != kafka.DuplicateSequenceNumber {
			no := p.refusal(one, o, resp.Brokers)
			if no.Status == http.StatusTooManyRequests {
				no.retryAfter = max(time.Duration(resp.ThrottleMillis)*time.Millisecond, time.Second)
			}
			p.failAll(q, no)
			continue
		}
		p.place(q, one, o)
	}
}

func outcomeOf(one *kmsg.ProduceResponseTopicPartition) (o wire.Outcome) {
	o.LeaderEpoch = kafka.NoEpoch
	one.UnknownTags.Each(func(tag uint32, v []byte) {
		if tag == wire.TagOutcome {
			_ = o.Decode(v) // from this program; what is damaged says nothing
		}
	})
	return o
}

// place says of each record where it is.
func (p *publication) place(q *part, one *kmsg.ProduceResponseTopicPartition, o wire.Outcome) {
	repeats := make(map[int32]*wire.Repeat, len(o.Repeats))
	for i := range o.Repeats {
		repeats[o.Repeats[i].Delta] = &o.Repeats[i]
	}
	for delta, i := range q.records {
		at := &stored{Partition: q.partition, Offset: one.BaseOffset + int64(delta), LeaderEpoch: int32(o.LeaderEpoch)}
		r := repeats[int32(delta)]
		switch {
		case r != nil && r.OtherContent:
			no := refuse(http.StatusUnprocessableEntity, "RECORD_ID_REUSED", "recordId "+strconv.Quote(p.list[i].id)+
				" was published before with another key or value, at offset "+strconv.FormatInt(int64(r.Offset), 10)+"; nothing was stored")
			p.outcomes[i].Problem = no
			continue
		case r != nil:
			at.Offset, at.Duplicate = int64(r.Offset), true
		}
		p.outcomes[i].stored = at
	}
}

// refusal is the problem of a partition whose part was not accepted.
func (p *publication) refusal(one *kmsg.ProduceResponseTopicPartition, o wire.Outcome, nodes []kmsg.ProduceResponseBroker) *problem {
	code := kafka.ErrorCode(one.ErrorCode)
	no := failed(code, one.ErrorMessage)
	no.Outcome = outcomeNone
	switch {
	case o.DedupOff:
		no.Code = "DEDUP_OFF"
	case code == kafka.MessageTooLarge && len(one.ErrorRecords) > 0:
		no.Code = "RECORD_TOO_LARGE"
	case o.DiskLimit && !o.Unknown:
		no.Code = "DISK_LIMIT"
	case o.Unknown:
		no.Status, no.Title, no.Outcome = http.StatusGatewayTimeout, http.StatusText(http.StatusGatewayTimeout), outcomeUnknown
		no.Detail = "whether the records are stored is not known; publish them again with the same recordId: " + no.Detail
	}
	if no.Status == http.StatusMisdirectedRequest {
		no.Leader = &leader{NodeID: one.CurrentLeader.LeaderID, LeaderEpoch: one.CurrentLeader.LeaderEpoch}
		for _, b := range nodes {
			if b.NodeID == no.Leader.NodeID {
				no.Leader.Host, no.Leader.Port = b.Host, b.Port
			}
		}
	}
	return no
}

func (p *publication) failAll(q *part, no *problem) {
	for _, i := range q.records {
		p.outcomes[i].Problem = no
	}
}

// allThrottled says that nothing of a publish was accepted, for a quota: that is one answer, with one time to wait.
func (p *publication) allThrottled() bool {
	for i := range p.outcomes {
		if no := p.outcomes[i].Problem; no == nil || no.Status != http.StatusTooManyRequests {
			return false
		}
	}
	return len(p.outcomes) > 0
}

// answer writes the outcome: of one record alone, or of each record of a batch.
func (p *publication) answer(w http.ResponseWriter, many bool) {
	if !many && p.outcomes[0].Problem != nil || p.allThrottled() {
		p.outcomes[0].Problem.write(w)
		return
	}
	status := http.StatusCreated
	for i := range p.outcomes {
		if p.outcomes[i].Problem != nil {
			status = http.StatusMultiStatus
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if many {
		_ = json.MarshalWrite(w, results{p.outcomes})
		return
	}
	_ = json.MarshalWrite(w, p.outcomes[0].stored)
}
