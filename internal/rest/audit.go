package rest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/audit"
	"strandline.dev/internal/kafka"
	"strandline.dev/internal/record"
)

type readAudit struct {
	Since     time.Time `query:"since" doc:"only what happened since then"`
	Until     time.Time `query:"until" doc:"only what happened until then"`
	Principal string    `query:"principal" maxLength:"300" doc:"only what this principal did or tried, as User:NAME"`
	Resource  string    `query:"resource" maxLength:"300" doc:"only what is about a resource with this text in it, as Topic:orders"`
	Outcome   string    `query:"outcome" enum:"done,failed,denied,unknown"`
	Limit     int       `query:"limit" default:"100" minimum:"1" maximum:"10000" doc:"only the newest"`
}

type auditTrail struct {
	Body struct {
		Entries []audit.Line       `json:"entries" doc:"in the order of time"`
		More    bool               `json:"more" doc:"there are older ones"`
		Chains  []audit.ChainState `json:"chains" doc:"what was verified; who keeps it elsewhere can tell later that nothing was taken away"`
		Broken  []string           `json:"broken" doc:"where a chain is broken: an entry is missing or was changed"`
	}
}

// describeAudit registers the route of the audit trail.
func (d *door) describeAudit(api huma.API) {
	huma.Register(api, huma.Operation{
		OperationID: "readAudit", Method: http.MethodGet, Path: "/v1/audit", Tags: []string{"access"},
		Summary: "Failed logins, denials and administrative changes; every read verifies all that is kept, and takes Read on the topic __strandline_audit",
	}, d.readAudit)
}

func (d *door) readAudit(ctx context.Context, in *readAudit) (*auditTrail, error) {
	if d.auditing.Add(1) > auditReadsMax {
		d.auditing.Add(-1)
		p := failed(kafka.ThrottlingQuotaExceeded, nil)
		p.Detail = "the audit trail is being read for others; ask again"
		return nil, p
	}
	defer d.auditing.Add(-1)
	ctx, cancel := context.WithTimeout(ctx, adminWait)
	defer cancel()
	resp, err := askHere[*kmsg.MetadataResponse](ctx, d, metadataOf(audit.TopicName))
	if err != nil {
		return nil, err
	}
	if len(resp.Topics) != 1 {
		return nil, failed(kafka.UnknownServerError, nil)
	}
	t := &resp.Topics[0]
	if code := kafka.ErrorCode(t.ErrorCode); code != kafka.None {
		p := failed(code, nil)
		if p.Status == http.StatusNotFound {
			p.Detail = "there is no audit trail: it is kept where auth.audit is on"
		}
		return nil, p
	}
	if in.Until.IsZero() {
		in.Until = d.cfg.Wall.Now().Add(time.Hour)
	}
	chains := make([]int32, len(t.Partitions))
	for i := range t.Partitions {
		chains[i] = t.Partitions[i].Partition
	}
	r := audit.NewReading(audit.Query{
		From: in.Since, To: in.Until, Principal: in.Principal, Resource: in.Resource, Outcome: in.Outcome, Most: auditEntriesMax,
	}, chains)
	for i := range t.Partitions {
		if err := d.readChain(ctx, r, t.TopicID, &t.Partitions[i]); err != nil {
			return nil, err
		}
	}
	out := &auditTrail{}
	b := &out.Body
	b.Entries, b.Chains = r.Lines(), r.Chains()
	if b.Broken, _ = r.Broken(); b.Broken == nil {
		b.Broken = []string{}
	}
	if n := len(b.Entries); n > in.Limit {
		b.Entries, b.More = b.Entries[n-in.Limit:], true
	}
	return out, nil
}

// readChain reads a chain from its start to the end that it has now.
func (d *door) readChain(ctx context.Context, r *audit.Reading, id [16]byte, p *kmsg.MetadataResponseTopicPartition) error {
	if p.Leader < 0 {
		return failed(kafka.LeaderNotAvailable, nil)
	}
	node := kafka.NodeID(p.Leader)
	rg, err := d.rangeOf(ctx, node, audit.TopicName, p.Partition)
	if err != nil {
		return err
	}
	r.Removed(p.Partition, rg.LogStart)
	end := rg.HighWatermark
	for at := rg.LogStart; at < end; {
		next, err := d.readEntries(ctx, r, node, wanted{topic: audit.TopicName, partition: p.Partition, from: at}, id)
		if no := (*problem)(nil); errors.As(err, &no) && no.Status == http.StatusRequestedRangeNotSatisfiable {
			// Retention removed it meanwhile. What was removed is not missed.
			if rg, err = d.rangeOf(ctx, node, audit.TopicName, p.Partition); err == nil {
				next = rg.LogStart
				r.Removed(p.Partition, next)
			}
		}
		if err != nil {
			return err
		}
		if next <= at { // nothing was read below the end: it would not end
			return failed(kafka.KafkaStorageError, nil)
		}
		at = next
	}
	return nil
}

// readEntries reads one piece of a chain, and says at which offset to go on.
func (d *door) readEntries(ctx context.Context, r *audit.Reading, node kafka.NodeID, q wanted, id kafka.TopicID) (next int64, err error) {
	resp, release, err := d.fetchFrom(ctx, node, q.request(id))
	if err != nil {
		return 0, err
	}
	defer release()
	if resp.ErrorCode != 0 {
		return 0, failed(kafka.ErrorCode(resp.ErrorCode), nil)
	}
	got := &resp.Topics[0].Partitions[0]
	if got.ErrorCode != 0 {
		return 0, failed(kafka.ErrorCode(got.ErrorCode), nil)
	}
	return takeEntries(r, q.partition, q.from, got.RecordBatches)
}

// takeEntries takes the entries of batches from an offset on, and says at which offset to go on.
func takeEntries(r *audit.Reading, chain int32, from int64, batches []byte) (next int64, err error) {
	next = from
	for len(batches) > 0 {
		b, rest, err := record.Split(batches)
		if err != nil {
			break // the last batch of an answer may be cut
		}
		batches = rest
		for rec, err := range b.Records(record.DecompressedLimit(len(b))) {
			if err != nil {
				return next, failed(kafka.KafkaStorageError, nil)
			}
			at := int64(b.BaseOffset()) + int64(rec.OffsetDelta)
			if at < from {
				continue
			}
			if r.Take(chain, at, rec.Value) != nil {
				p := failed(kafka.PolicyViolation, nil)
				p.Detail = "too many entries match; ask for less with since, until or principal"
				return next, p
			}
		}
		next = max(next, int64(b.NextOffset()))
	}
	return next, nil
}
