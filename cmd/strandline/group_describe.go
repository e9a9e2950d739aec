package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"strandline.dev/internal/group"
)

func newGroupDescribeCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "describe GROUP...",
		Short: "Show members, committed offsets and lag of consumer groups",
		Long: `Show consumer groups: their members, and for each partition the committed offset (the next record to read), the end of the
partition, the lag and who reads it. Partitions that were committed are shown whether or not the group has members.

TREND is how the lag changes, in records a minute, from half a minute to a minute ago until now; "-" when it has not been seen for so
long. OLDEST is the age of the oldest record that the group has not read, TIME TO LOSS when retention will have passed it, STATE one of:
caught up; behind; falling behind (the lag grew over the last half minute or more); stuck (records wait, the group has members and
committed nothing for a minute); no members; losing data (retention has passed the group, or may at any moment); unknown (the
partition's leader does not answer). WHY shows the rule that decided. The first line has the lag of all partitions, or of how many it
is not known, the trend where it is known of each, and the worst of their states.`,
		Example: `  strandline group describe billing
  strandline group describe billing shipping
  strandline group describe billing -o json | jq .lag`,
		Args: atLeastArgs("GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.groupDescribe(cmd, args) },

		ValidArgsFunction: a.completeGroups,
	}
	return cmd
}

// describedGroup is one line of `group describe -o json`.
type describedGroup struct {
	Group        string            `json:"group"`
	State        string            `json:"state"`
	ProtocolType string            `json:"protocolType"`
	Protocol     string            `json:"protocol"`
	Coordinator  int32             `json:"coordinator"`
	Lag          *int64            `json:"lag"`                    // of all partitions whose lag is known; null: of none
	Unknown      int               `json:"unknownPartitions"`      // how many the lag is without
	Trend        *int64            `json:"lagPerMinute,omitempty"` // how it changes; absent when it is not known
	Backlog      string            `json:"backlog,omitempty"`      // the worst state of the partitions
	Members      []describedMember `json:"members"`
	Partitions   []describedLag    `json:"partitions"`
}

type describedMember struct {
	MemberID   string  `json:"memberId"`
	InstanceID *string `json:"instanceId,omitempty"`
	ClientID   string  `json:"clientId"`
	Host       string  `json:"host"`
	Partitions int     `json:"partitions"` // 0: idle
}

type describedLag struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Committed *int64 `json:"committed"` // null: never
	End       *int64 `json:"end"`       // null: unknown
	Lag       *int64 `json:"lag"`       // null: unknown; without a commit it counts from the start
	MemberID  string `json:"memberId,omitempty"`
	Error     string `json:"error,omitempty"`
	*describedBacklog
}

func (a *app) groupDescribe(cmd *cobra.Command, names []string) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	p := a.printer(s.settings)
	var failed []string
	for i, name := range names {
		ctx, cancel := s.bounded(cmd.Context())
		d, err := s.describeGroup(ctx, name)
		cancel()
		if err != nil {
			err = s.explain(err, "cannot describe group %s", name)
			if len(names) == 1 {
				return err
			}
			failed = append(failed, err.Error())
			continue
		}
		if p.json {
			err = p.object(d)
		} else {
			err = p.printGroup(d, i > 0)
		}
		if err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return &failure{what: fmt.Sprintf("%d of %d groups not described", len(failed), len(names)), why: errors.New(strings.Join(failed, "; "))}
	}
	return nil
}

// describeGroup asks for everything about one group.
func (s *session) describeGroup(ctx context.Context, name string) (describedGroup, error) {
	g, err := s.groupLag(ctx, name)
	if err != nil {
		return describedGroup{}, err
	}
	d := describedGroup{
		Group: name, State: g.State, ProtocolType: g.ProtocolType, Protocol: g.Protocol, Coordinator: g.Coordinator.NodeID,
		Members: []describedMember{}, Partitions: []describedLag{},
	}
	report, err := s.report(ctx, name, d.Coordinator)
	if err != nil {
		return describedGroup{}, err
	}
	var backlogs map[group.Place]*group.PartitionReport
	if report != nil {
		d.Backlog, backlogs = report.State.String(), report.Places()
		if sum, has := report.Trend(); has {
			d.Trend = &sum
		}
	}
	owned := map[string]int{}
	for _, topic := range slices.Sorted(maps.Keys(g.Lag)) {
		for _, partition := range slices.Sorted(maps.Keys(g.Lag[topic])) {
			l := g.Lag[topic][partition]
			if l.Member != nil {
				owned[l.Member.MemberID]++
			} else if l.Commit.At < 0 && l.Err == nil {
				continue // neither read nor committed
			}
			row := describeLag(l)
			if p := backlogs[group.Place{Topic: topic, Partition: partition}]; p != nil {
				row.take(p)
			}
			d.Partitions = append(d.Partitions, row)
		}
	}
	d.Lag, d.Unknown = lagOf(d.Partitions)
	for _, m := range g.Members {
		d.Members = append(d.Members, describedMember{
			MemberID: m.MemberID, InstanceID: m.InstanceID, ClientID: m.ClientID, Host: strings.TrimPrefix(m.ClientHost, "/"), Partitions: owned[m.MemberID],
		})
	}
	return d, nil
}

// lagOf is the sum of what is known, nil when there is something to know and nothing of it is known, and how many partitions are not in it.
func lagOf(partitions []describedLag) (lag *int64, unknown int) {
	sum := int64(0)
	for i := range partitions {
		if lag := partitions[i].Lag; lag != nil {
			sum += *lag
		} else {
			unknown++
		}
	}
	if unknown > 0 && unknown == len(partitions) {
		return nil, unknown
	}
	return &sum, unknown
}

// take adds what the coordinator knows. It counts the records that are there to be read, where offsets also count those that compaction has removed.
func (l *describedLag) take(p *group.PartitionReport) {
	l.describedBacklog = describeBacklog(p)
	if p.Known {
		end := int64(p.End)
		l.End, l.Lag, l.Error = &end, &p.Lag, ""
	}
}

func describeLag(l kadm.GroupMemberLag) describedLag {
	d := describedLag{Topic: l.Topic, Partition: l.Partition}
	if l.Commit.At >= 0 {
		d.Committed = &l.Commit.At
	}
	if l.End.Err == nil {
		d.End = &l.End.Offset
	}
	if l.Err == nil {
		d.Lag = &l.Lag
	} else {
		d.Error = reason(l.Err)
	}
	if l.Member != nil {
		d.MemberID = l.Member.MemberID
	}
	return d
}

func (p printer) printGroup(d describedGroup, again bool) error {
	gap := ""
	if again {
		gap = "\n"
	}
	protocol := orDash(d.ProtocolType)
	if d.Protocol != "" {
		protocol += "/" + d.Protocol
	}
	if _, err := fmt.Fprintf(p.w, "%sgroup %s, %s, protocol %s, coordinator %d, %d members, %s\n",
		gap, visible(d.Group), d.State, visible(protocol), d.Coordinator, len(d.Members), d.headline()); err != nil {
		return err
	}
	var members [][]string
	for _, m := range d.Members {
		reads := strconv.Itoa(m.Partitions)
		if m.Partitions == 0 {
			reads = "idle"
		}
		instance := "-"
		if m.InstanceID != nil {
			instance = *m.InstanceID
		}
		members = append(members, []string{m.MemberID, instance, orDash(m.ClientID), m.Host, reads})
	}
	if err := p.section([]string{"MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS"}, members); err != nil {
		return err
	}
	var rows [][]string
	for _, l := range d.Partitions {
		lag := number(l.Lag)
		if l.Error != "" {
			lag = l.Error
		}
		b := l.describedBacklog
		if b == nil {
			b = &describedBacklog{}
		}
		rows = append(rows, []string{
			l.Topic, strconv.Itoa(int(l.Partition)), number(l.Committed), number(l.End), lag, trend(b.Trend), span(b.OldestMs), span(b.TimeToLossMs), orDash(b.State), orDash(l.MemberID),
		})
	}
	if err := p.section([]string{"TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "TREND", "OLDEST", "TIME TO LOSS", "STATE", "MEMBER"}, rows); err != nil {
		return err
	}
	var rules [][]string
	for _, l := range d.Partitions {
		if b := l.describedBacklog; b != nil && b.State != group.CaughtUp.String() {
			rules = append(rules, []string{fmt.Sprintf("%s-%d", l.Topic, l.Partition), b.Rule})
		}
	}
	return p.section([]string{"PARTITION", "WHY"}, rules)
}

// section is a table behind an empty line; nothing when it has no rows.
func (p printer) section(heading []string, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(p.w); err != nil {
		return err
	}
	return p.table(heading, rows)
}

// number prints a number that may be unknown.
func number(n *int64) string {
	if n == nil {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}
