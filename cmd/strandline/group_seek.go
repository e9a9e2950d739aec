package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"strandline.dev/internal/group"
)

// seekFlags is what `group seek` is asked to do.
type seekFlags struct {
	to            string
	topics        []string
	execute, undo bool
}

func newGroupSeekCommand(a *app) *cobra.Command {
	var f seekFlags
	cmd := &cobra.Command{
		Use:   "seek GROUP --to start|end|OFFSET|@TIME|+N|-N",
		Short: "Move a consumer group to other offsets",
		Long: `Move a consumer group to other offsets, to read records again or to skip some. Without --execute nothing is changed: the table shows
where each partition would go, and how many records that skips or reads again. Without --topics it is all partitions of the topics that the
group has committed in. A group with members is refused, also if it became active since the table was shown.

Where to go (--to), in each partition:
  start, end        the first record, the next record to come
  OFFSET            there
  +N, -N            N records after, before the place that the group has committed
  @TIME             the first record not older: @2026-01-31, @2026-01-31T15:04:05Z, @1767225600000, @-15m
What is outside the records kept becomes the nearest place inside, and the table says so.

What a seek replaces is kept until the next seek: --undo puts it back, and a second --undo takes that back.`,
		Example: `  strandline group seek billing --to start
  strandline group seek billing --to @2026-01-31T15:00:00Z --topics orders --execute
  strandline group seek billing --to -100 --execute
  strandline group seek billing --undo --execute`,
		Args: exactArgs("GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.groupSeek(cmd, args[0], f) },

		ValidArgsFunction: a.completeGroups,
	}
	cmd.Flags().StringVar(&f.to, "to", "", "where to go, a `position`: start, end, OFFSET, @TIME, +N or -N")
	cmd.Flags().StringSliceVar(&f.topics, "topics", nil, "only this `TOPIC`, or these (T,U), also if the group has committed nothing there")
	cmd.Flags().BoolVar(&f.execute, "execute", false, "move the group; without it nothing is changed")
	cmd.Flags().BoolVar(&f.undo, "undo", false, "put back what the last seek replaced")
	return cmd
}

// soughtGroup is what `group seek -o json` prints.
type soughtGroup struct {
	Group      string       `json:"group"`
	Undo       bool         `json:"undo"`
	Executed   bool         `json:"executed"`
	Partitions []group.Move `json:"partitions"`
}

// target reads where to go.
func (f *seekFlags) target(now time.Time) (group.Target, error) {
	switch {
	case f.undo && (f.to != "" || len(f.topics) > 0):
		return group.Target{}, usagef("--undo puts back all that the last seek replaced: it excludes --to and --topics")
	case f.undo:
		return group.Target{}, nil
	case f.to == "":
		return group.Target{}, usagef("say where to go: --to start, end, OFFSET, @TIME, +N or -N, or --undo")
	}
	t, err := group.ParseTarget(f.to, now)
	if err != nil {
		return t, usageError{err}
	}
	return t, nil
}

func (a *app) groupSeek(cmd *cobra.Command, name string, f seekFlags) error {
	target, err := f.target(time.Now())
	if err != nil {
		return err
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	k := seeking{session: s, group: name}
	if err := k.look(ctx); err != nil {
		return err
	}
	out := soughtGroup{Group: name, Undo: f.undo}
	if f.undo {
		out.Partitions, err = k.planUndo()
	} else {
		out.Partitions, err = k.plan(ctx, target, f.topics)
	}
	if err != nil {
		return err
	}
	moving := slices.ContainsFunc(out.Partitions, func(m group.Move) bool { return m.Moves() })
	if f.execute && (moving || f.undo) {
		if err := k.execute(ctx, &out); err != nil {
			return err
		}
	}
	p := a.printer(s.settings)
	if p.json {
		return p.object(out)
	}
	return p.printSeek(out, moving)
}

// seeking is one seek of a group: who coordinates it, and what it was when it was looked at.
type seeking struct {
	*session
	group       string
	coordinator int32
	report      *group.Report
	ids         map[string]kadm.TopicID // of the topics of the plan
}

// look asks where the group is, and refuses one with members.
func (k *seeking) look(ctx context.Context) error {
	described, err := k.admin.DescribeGroups(ctx, k.group)
	if err != nil {
		return k.explain(err, "cannot look at group %s", k.group)
	}
	k.coordinator = described[k.group].Coordinator.NodeID
	if k.report, err = k.session.report(ctx, k.group, k.coordinator); err != nil {
		return k.explain(err, "cannot look at group %s", k.group)
	}
	switch {
	case k.report == nil:
		return &failure{what: fmt.Sprintf("group %s not moved: node %d does not know this request", k.group, k.coordinator), todo: "it is another broker, or an older one: update it"}
	case k.report.Members > 0:
		return k.refused(kerr.NonEmptyGroup)
	}
	return nil
}

// unknown is for an exchange that broke off, or a coordinator that was replaced meanwhile: the move may be in its log.
func (k *seeking) unknown(err error) error {
	return &failure{
		what: fmt.Sprintf("whether group %s was moved is not known", k.group), why: err,
		todo: fmt.Sprintf("see where it is with `strandline group describe %s` before you repeat this", k.group),
	}
}

// refused says why the group stays where it is.
func (k *seeking) refused(code error) error {
	switch {
	case kerr.IsRetriable(code), errors.Is(code, kerr.UnknownServerError):
		return k.unknown(code)
	case errors.Is(code, kerr.NonEmptyGroup):
		return &failure{
			what: fmt.Sprintf("group %s not moved", k.group), why: &brokerError{code, "the group is active: its place is its members' to move"}, todo: groupAdvice(code),
		}
	}
	return failf(code, "group %s not moved", k.group)
}

func (p printer) printSeek(g soughtGroup, moving bool) error {
	rows := make([][]string, 0, len(g.Partitions))
	for i := range g.Partitions {
		q := &g.Partitions[i]
		rows = append(rows, []string{q.Topic, strconv.Itoa(int(q.Partition)), number(q.From), number(q.To), effect(q), orDash(q.Note)})
	}
	if err := p.table([]string{"TOPIC", "PARTITION", "FROM", "TO", "RECORDS", "NOTE"}, rows); err != nil {
		return err
	}
	end := "nothing was changed; --execute moves the group"
	switch {
	case g.Executed:
		end = fmt.Sprintf("group %s was moved; `strandline group seek %s --undo --execute` takes it back", g.Group, g.Group)
	case !moving:
		end = "nothing to move"
	}
	_, err := fmt.Fprintf(p.w, "\n%s\n", end)
	return err
}

// effect says what the move does to the records.
func effect(p *group.Move) string {
	switch {
	case p.Skips == nil || *p.Skips == 0:
		return "-"
	case *p.Skips > 0:
		return fmt.Sprintf("skips %d", *p.Skips)
	}
	return fmt.Sprintf("reads %d again", -*p.Skips)
}
