package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/wire"
)

func newTopicDeleteCommand(a *app) *cobra.Command {
	var f deleteFlags
	cmd := &cobra.Command{
		Use:   "delete TOPIC...",
		Short: "Delete topics",
		Long: `Delete topics and their records. On a terminal you are asked first; -y answers yes. The names are free again at once; the
broker keeps the records for the topic's strandline.delete.recovery.ms before it purges them, and until then topic undelete brings
everything back. That time is 0 under strandline dev: what is deleted there is gone. With --expected-version nothing is deleted when the topic
was changed since you looked at it (topic describe shows the version).`,
		Example: `  strandline topic delete orders
  strandline topic delete orders payments -y
  strandline topic delete orders --expected-version 3
  strandline topic delete orders --dry-run`,
		Args: atLeastArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.topicDelete(cmd, args, f) },

		ValidArgsFunction: a.completeTopics,
	}
	cmd.Flags().Int64Var(&f.expectedVersion, "expected-version", 0, "delete only if the topic has this version")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "print what would be deleted, delete nothing")
	return cmd
}

// deleteFlags are the flags of `topic delete`.
type deleteFlags struct {
	dryRun          bool
	expectedVersion int64 // 0: any
}

func (a *app) topicDelete(cmd *cobra.Command, names []string, f deleteFlags) error {
	switch given := cmd.Flags().Changed("expected-version"); {
	case given && f.expectedVersion < 1:
		return usagef("--expected-version %d: versions count from 1", f.expectedVersion)
	case given && len(names) > 1:
		return usagef("--expected-version goes with one topic")
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	if f.dryRun {
		return a.topicDeletePreview(cmd, s, names, f)
	}
	if err := a.confirm(s.settings, fmt.Sprintf("Delete %s and all records in it?", strings.Join(names, ", "))); err != nil {
		return err
	}
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	if f.expectedVersion != 0 {
		// Another broker would skip the condition and delete.
		if _, err := s.topicLife(ctx, names[0]); err != nil {
			return s.explain(err, "topic %s not deleted", names[0])
		}
	}
	results, err := s.deleteTopics(ctx, names, f.expectedVersion)
	if err != nil {
		return s.explain(err, "cannot delete %s", names[0])
	}
	return a.printer(s.settings).printTopicResults("deleted", results)
}

// deleteTopics deletes topics and says of each until when it can be restored.
func (s *session) deleteTopics(ctx context.Context, names []string, expectedVersion int64) ([]topicResult, error) {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis, req.TopicNames = s.serverMillis(), names
	for i := range names {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = &names[i]
		t.UnknownTags.Set(wire.TagDeletion, wire.NumberTag(expectedVersion))
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return nil, err
	}
	results := make([]topicResult, 0, len(names))
	for _, name := range names {
		r := topicResult{Topic: name, err: errNoAnswer}
		for i := range resp.Topics {
			if t := &resp.Topics[i]; textOf(t.Topic) == name {
				r.err = answered(kerr.ErrorForCode(t.ErrorCode), textOf(t.ErrorMessage))
				r.RecoverableUntil = recoverableUntil(&t.UnknownTags)
			}
		}
		r.Done = r.err == nil
		results = append(results, r)
	}
	return results, nil
}

// recoverableUntil reads the answer to a deletion; nil when the topic cannot be restored, or the broker does not tell.
func recoverableUntil(tags *kmsg.Tags) *time.Time {
	v, _ := wire.Tagged(tags, wire.TagDeletion)
	ms, err := wire.ReadNumberTag(v)
	if err != nil || ms == 0 {
		return nil
	}
	until := time.UnixMilli(ms).UTC()
	return &until
}

// topicDeletePreview shows what a deletion would take away.
func (a *app) topicDeletePreview(cmd *cobra.Command, s *session, names []string, f deleteFlags) error {
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	results := make([]topicResult, 0, len(names))
	for _, name := range names {
		d, err := s.describeTopic(ctx, name)
		if _, _, down := s.dials.down(); err != nil && down {
			return s.explain(err, "cannot describe %s", name)
		}
		if v := d.TopicVersion; err == nil && f.expectedVersion != 0 && v != f.expectedVersion {
			err = &brokerError{kerr.InvalidUpdateVersion, fmt.Sprintf("the topic has version %d, not %d", v, f.expectedVersion)}
		}
		r := topicResult{Topic: name, err: err, DryRun: true}
		if err == nil {
			var records int64
			for _, p := range d.Partitions {
				records += max(0, p.HighWatermark-p.LogStart)
			}
			count, offsets := fmt.Sprint(len(d.Partitions)), fmt.Sprint(records)
			r.Changes = []change{{Field: "partitions", From: &count}, {Field: "offsets in them", From: &offsets}}
		}
		results = append(results, r)
	}
	return a.printer(s.settings).printTopicResults("deleted", results)
}
