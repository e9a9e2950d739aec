package main

import (
	"bufio"
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"strandline.dev/internal/group"
)

// groupCommitMax bounds the last commit of a consumer that is interrupted.
const groupCommitMax = 5 * time.Second

// check refuses flags that mean nothing in a group: its members share the partitions among themselves, so no one member knows when all are
// at their end.
func (f consumeFlags) check() error {
	switch {
	case f.count < 0:
		return usagef("-n %d: want 0 or more", f.count)
	case f.group == "":
		return nil
	case len(f.partitions) > 0:
		return usagef("-g and -p exclude each other: the group gives out the partitions")
	case f.exitAtEnd:
		return usagef("-g and -e exclude each other: other members may read what is left; end after a number of records with -n")
	case f.position.Kind == group.PositionExact:
		return usagef("-g takes no exact offset: an offset outside a partition would be moved silently; give start, end, -N, +N or @TIME")
	}
	return nil
}

// consumeGroup consumes as a member of a group. A record is committed after it has been printed, so that what an interrupted consumer did
// not print is read by the next one.
func (a *app) consumeGroup(cmd *cobra.Command, topic string, f consumeFlags, render func([]byte, *kgo.FetchPartition, *kgo.Record) []byte) error {
	s, err := a.connect(
		kgo.ConsumerGroup(f.group), kgo.ConsumeTopics(topic),
		kgo.ConsumeStartOffset(startOffset(f.position)), // where the group has no commit
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),     // never jump silently over lost records
		kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll(),
		kgo.KeepControlRecords(), kgo.FetchMaxWait(500*time.Millisecond),
	)
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	_, err = s.partitionCount(ctx, topic)
	cancel()
	if err != nil {
		return s.explain(err, "cannot consume %s", topic)
	}
	defer s.client.CloseAllowingRebalance()
	out := bufio.NewWriterSize(a.stdout, 64<<10)
	c := &consumption{session: s, topic: topic, out: out, left: f.count, limited: f.count > 0, render: render, group: f.group}
	return c.run(cmd.Context())
}

// startOffset is the position as the client library takes it.
func startOffset(p group.Position) kgo.Offset {
	switch p.Kind {
	case group.PositionStart:
		return kgo.NewOffset().AtStart().Relative(p.N)
	case group.PositionEnd:
		return kgo.NewOffset().AtEnd().Relative(-p.N)
	case group.PositionTime:
		return kgo.NewOffset().AfterMilli(p.N)
	}
	return kgo.NewOffset().At(p.N)
}

// commit stores what has been printed, and lets the group rebalance.
func (c *consumption) commit(ctx context.Context) error {
	if c.group == "" {
		return nil
	}
	defer c.session.client.AllowRebalance()
	if len(c.printed) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), groupCommitMax)
	defer cancel()
	err := c.session.client.CommitRecords(ctx, c.printed...)
	c.printed = c.printed[:0]
	if err != nil {
		return c.session.explain(err, "cannot commit to group %s what was printed; it will be read again", c.group)
	}
	return nil
}
