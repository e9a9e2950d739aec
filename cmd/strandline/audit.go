package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/internal/audit"
	"strandline.dev/internal/auth"
)

// auditQuery is what `audit` is asked for.
type auditQuery struct {
	since, until, principal, resource, outcome string
	verify                                     bool

	from, to time.Time
}

func newAuditCommand(a *app) *cobra.Command {
	var q auditQuery
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show failed logins, denials and administrative changes, and verify that none was altered",
		Long: `Show what the cluster has kept of failed logins, denials and administrative changes: when, who, from where, what, and what became of it. It is a
record of access, not a proof that a message was delivered.

Entries are kept where auth.audit is on: by default, where clients authenticate. Each partition of __strandline_audit is a chain of hashes. Every
run verifies all of it; a missing or changed entry is named, and the exit code is 1. --verify shows the end of each chain instead of entries: who
keeps it elsewhere can tell later that nothing up to there was taken away. It takes Read on the topic __strandline_audit.

Outcomes: done, failed (a change that was refused or not made), denied (also failed logins), unknown (a change without an end: in progress, or the
node ended before it said).`,
		Example: `  strandline audit --since 24h
  strandline audit --principal User:alice --outcome denied
  strandline audit --resource Topic:orders -o json | jq .after
  strandline audit --verify`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.audit(cmd.Context(), &q) },
	}
	f := cmd.Flags()
	f.StringVar(&q.since, "since", "", "only what happened since then: a duration back from now, or a time as 2026-01-31T15:04:05Z")
	f.StringVar(&q.until, "until", "", "only what happened until then, like --since")
	f.StringVar(&q.principal, "principal", "", "only what this principal did or tried, as User:NAME")
	f.StringVar(&q.resource, "resource", "", "only what is about a resource with this text in it, as Topic:orders")
	f.StringVar(&q.outcome, "outcome", "", "only with this outcome: "+strings.Join(audit.Outcomes, ", "))
	f.BoolVar(&q.verify, "verify", false, "show the chains instead of their entries")
	return cmd
}

func (a *app) audit(ctx context.Context, q *auditQuery) error {
	if err := q.parse(time.Now()); err != nil {
		return err
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	trail, err := q.readAll(ctx, s)
	if err != nil {
		return err
	}
	p := a.printer(s.settings)
	if q.verify {
		err = showChains(p, trail.Chains())
	} else {
		err = showAudit(p, trail.Lines())
	}
	broken, breaks := trail.Broken()
	if err != nil || breaks == 0 {
		return err
	}
	return &failure{
		what: fmt.Sprintf("the audit trail is broken in %d places", breaks), why: errors.New(strings.Join(broken, "; ")),
		todo: "compare the partition's replicas with `strandline log verify`, and find out who could write to the nodes' disks",
	}
}

// parse reads the times and the outcome.
func (q *auditQuery) parse(now time.Time) (err error) {
	moment := func(flag, s string, none time.Time) time.Time {
		if s == "" {
			return none
		}
		if d, bad := time.ParseDuration(s); bad == nil {
			return now.Add(-d)
		}
		t, bad := time.Parse(time.RFC3339, s)
		if bad != nil && err == nil {
			err = usageError{fmt.Errorf("--%s %q is neither a duration like 24h nor a time like 2026-01-31T15:04:05Z", flag, s)}
		}
		return t
	}
	q.from, q.to = moment("since", q.since, time.Time{}), moment("until", q.until, now.Add(time.Hour))
	if err == nil && q.outcome != "" && !slices.Contains(audit.Outcomes, q.outcome) {
		err = usageError{fmt.Errorf("--outcome %q: there are %s", q.outcome, strings.Join(audit.Outcomes, ", "))}
	}
	return err
}

// noTrail says why there is nothing to read. Nobody but the broker may make the topic.
func noTrail() error {
	return &failure{what: "there is no audit trail", why: errors.New("it is kept where auth.audit is on"), todo: "set auth.audit: on, or sasl on a listener, on every node"}
}

// trailReader reads a trail from the starts of its chains to the ends that they have now.
type trailReader struct {
	s     *session
	topic string
	r     *audit.Reading
	left  map[int32]int64 // of the chains that are not read to their end
}

// readAll reads every chain from its start to the end that it has now.
func (q *auditQuery) readAll(ctx context.Context, s *session) (*audit.Reading, error) {
	t, err := q.begin(ctx, s, audit.TopicName)
	if err != nil {
		return nil, err
	}
	return t.r, t.readOn(ctx)
}

// begin finds out what there is to read.
func (q *auditQuery) begin(ctx context.Context, s *session, topic string) (*trailReader, error) {
	bounded, cancel := s.bounded(ctx)
	defer cancel()
	listed, err := s.admin.ListEndOffsets(bounded, topic)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, noTrail()
	}
	if err != nil {
		return nil, s.explain(err, "cannot read the audit trail")
	}
	if len(listed[topic]) == 0 {
		return nil, noTrail()
	}
	var chains []int32
	t := &trailReader{s: s, topic: topic, left: map[int32]int64{}}
	for p, end := range listed[topic] {
		if errors.Is(end.Err, kerr.UnknownTopicOrPartition) {
			return nil, noTrail()
		}
		if end.Err != nil {
			return nil, s.explain(end.Err, "cannot read the audit trail")
		}
		chains, t.left[p] = append(chains, p), end.Offset
	}
	t.r = audit.NewReading(audit.Query{
		From: q.from, To: q.to, Principal: q.principal, Resource: q.resource, Outcome: q.outcome, ChainsOnly: q.verify, Most: auditEntriesMax,
	}, chains)
	return t, t.passOver(ctx)
}

// passOver takes from left the chains that have nothing more to read: what is not there any more is not waited for, and not missed.
func (t *trailReader) passOver(ctx context.Context) error {
	ctx, cancel := t.s.bounded(ctx)
	defer cancel()
	listed, err := t.s.admin.ListStartOffsets(ctx, t.topic)
	if err != nil {
		return t.s.explain(err, "cannot read the audit trail")
	}
	for p, start := range listed[t.topic] {
		end, open := t.left[p]
		if !open {
			continue
		}
		if start.Err != nil {
			return t.s.explain(start.Err, "cannot read the audit trail")
		}
		if t.r.Removed(p, start.Offset); start.Offset >= end {
			delete(t.left, p)
		}
	}
	return nil
}

// readOn reads to the ends.
func (t *trailReader) readOn(ctx context.Context) error {
	from := map[int32]kgo.Offset{}
	for p := range t.left {
		from[p] = kgo.NewOffset().At(t.r.Next(p))
	}
	t.s.client.AddConsumePartitions(map[string]map[int32]kgo.Offset{t.topic: from})
	for last := time.Now(); len(t.left) > 0; {
		some, err := t.poll(ctx)
		switch {
		case err != nil:
			return err
		case some:
			last = time.Now()
		case time.Since(last) > t.s.timeout:
			return t.s.explain(context.DeadlineExceeded, "cannot read the audit trail")
		}
	}
	return nil
}

// poll takes what has come, and takes from left what is read to its end, or removed. It says whether something has come.
func (t *trailReader) poll(ctx context.Context) (some bool, err error) {
	short, cancel := context.WithTimeout(ctx, min(auditQuiet, t.s.timeout))
	defer cancel()
	fetches := t.s.client.PollFetches(short)
	if err := fetches.Err(); err != nil && (short.Err() == nil || ctx.Err() != nil) {
		return false, t.s.explain(err, "cannot read the audit trail")
	}
	if fetches.NumRecords() == 0 {
		return false, t.passOver(ctx)
	}
	looked := false
	for rec := range fetches.RecordsAll() {
		end, open := t.left[rec.Partition]
		if !open {
			continue
		}
		if rec.Offset > t.r.Next(rec.Partition) && !looked { // removed before it was read, or missing
			if err := t.passOver(ctx); err != nil {
				return true, err
			}
			looked = true
		}
		if err := t.r.Take(rec.Partition, rec.Offset, rec.Value); err != nil {
			return true, &failure{what: "the audit trail is not shown", why: err, todo: "ask for less with --since and --until"}
		}
		if rec.Offset+1 >= end {
			delete(t.left, rec.Partition)
		}
	}
	return true, nil
}

func showAudit(p printer, lines []audit.Line) error {
	var rows [][]string
	for _, l := range lines {
		if p.json {
			if err := p.object(l); err != nil {
				return err
			}
			continue
		}
		what := l.API
		if l.What != auth.Change {
			what = l.What + ": " + l.API
		}
		if l.Count > 1 {
			what += " x" + strconv.FormatUint(uint64(l.Count), 10)
		}
		rows = append(rows, []string{l.At.Format(time.RFC3339), l.Principal, l.Peer, what, orDash(l.Resource), l.Outcome, orDash(l.Why)})
	}
	if p.json {
		return nil
	}
	return p.table([]string{"TIME", "PRINCIPAL", "FROM", "WHAT", "RESOURCE", "OUTCOME", "WHY"}, rows)
}

func showChains(p printer, chains []audit.ChainState) error {
	var rows [][]string
	for _, c := range chains {
		if p.json {
			if err := p.object(c); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{strconv.Itoa(int(c.Chain)), strconv.Itoa(c.Entries), strconv.FormatUint(c.Next, 10), orDash(c.LastHash), strconv.Itoa(c.Broken)})
	}
	if p.json {
		return nil
	}
	return p.table([]string{"CHAIN", "ENTRIES", "NEXT", "LAST-HASH", "BROKEN"}, rows)
}
