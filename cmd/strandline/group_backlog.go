package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/group"
)

// describedBacklog is how far a group is behind in a partition, as operators think of it. What is null is not known, or never happens.
type describedBacklog struct {
	State        string `json:"state"`                            // caught up, behind, falling behind, stuck, no members, losing data, unknown
	Rule         string `json:"rule"`                             // why it is in this state
	OldestMs     *int64 `json:"oldestUnprocessedAgeMs,omitempty"` // since its append; absent when nothing is unread
	TimeToLossMs *int64 `json:"timeToLossMs,omitempty"`           // until retention passes the group; absent when it never does
	Trend        *int64 `json:"lagPerMinute,omitempty"`           // how the lag changes; absent when it is not known
	LostFrom     *int64 `json:"lostFrom,omitempty"`               // records that the group can no longer read
	LostTo       *int64 `json:"lostTo,omitempty"`                 // exclusive
}

// report asks the coordinator what a group has not read; nil from a broker that does not know.
func (s *session) report(ctx context.Context, name string, coordinator int32) (*group.Report, error) {
	req := kmsg.NewPtrOffsetFetchRequest()
	g := kmsg.NewOffsetFetchRequestGroup()
	g.Group = name
	req.Groups = append(req.Groups, g)
	req.UnknownTags.Set(group.ReportType, []byte{1})
	resp, err := req.RequestWith(ctx, s.client.Broker(int(coordinator)))
	switch {
	case err != nil:
		return nil, err
	case len(resp.Groups) != 1:
		return nil, nil
	case resp.Groups[0].ErrorCode != 0:
		return nil, kerr.ErrorForCode(resp.Groups[0].ErrorCode)
	}
	var r *group.Report
	resp.Groups[0].UnknownTags.Each(func(tag uint32, v []byte) {
		if tag == group.ReportType {
			r = &group.Report{}
			err = r.Decode(v)
		}
	})
	return r, err
}

func describeBacklog(p *group.PartitionReport) *describedBacklog {
	d := &describedBacklog{State: p.State.String(), Rule: p.Rule}
	ms := func(v time.Duration) *int64 { n := v.Milliseconds(); return &n }
	if p.Known && p.Lag > 0 {
		d.OldestMs = ms(p.Oldest)
	}
	if p.Known && p.Expires {
		d.TimeToLossMs = ms(p.LossIn)
	}
	if p.HasTrend {
		d.Trend = &p.Trend
	}
	if !p.Lost.IsEmpty() {
		from, to := int64(p.Lost.From), int64(p.Lost.To)
		d.LostFrom, d.LostTo = &from, &to
	}
	return d
}

// headline is what is said of a whole group: its lag, and where it is known how the lag changes and the state.
func (d *describedGroup) headline() string {
	text := "lag " + number(d.Lag)
	if d.Unknown > 0 && d.Lag != nil {
		text = fmt.Sprintf("lag at least %d, %d of %d partitions are not known", *d.Lag, d.Unknown, len(d.Partitions))
	}
	if d.Trend != nil {
		text += " (" + trend(d.Trend) + ")"
	}
	if d.Backlog != "" {
		text += ", " + d.Backlog
	}
	return text
}

// trend prints how a lag changes; "-" when it is not known.
func trend(perMinute *int64) string {
	switch {
	case perMinute == nil:
		return "-"
	case *perMinute == 0:
		return "0/min"
	}
	return fmt.Sprintf("%+d/min", *perMinute)
}

// span prints milliseconds as people say them; "-" for none.
func span(ms *int64) string {
	if ms == nil {
		return "-"
	}
	d := time.Duration(*ms) * time.Millisecond
	switch {
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}
