package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

func newTopicDeleteCommand(a *app) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "delete TOPIC...",
		Short: "Delete topics",
		Long: `Delete topics and their records. On a terminal you are asked first; -y answers yes. The names are free again at once; the
broker keeps the records for the topic's strandline.delete.recovery.ms before it purges them.`,
		Example: `  strandline topic delete orders
  strandline topic delete orders payments -y
  strandline topic delete orders --dry-run`,
		Args: atLeastArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.topicDelete(cmd, args, dryRun) },

		ValidArgsFunction: a.completeTopics,
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print what would be deleted, delete nothing")
	return cmd
}

func (a *app) topicDelete(cmd *cobra.Command, names []string, dryRun bool) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	if dryRun {
		return a.topicDeletePreview(cmd, s, names)
	}
	if err := a.confirm(s.settings, fmt.Sprintf("Delete %s and all records in it?", strings.Join(names, ", "))); err != nil {
		return err
	}
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	responses, err := s.admin.DeleteTopics(ctx, names...)
	if err != nil {
		return s.explain(err, "cannot delete %s", names[0])
	}
	results := make([]topicResult, 0, len(names))
	for _, name := range names {
		r := responses[name]
		err := answered(r.Err, r.ErrMessage)
		results = append(results, topicResult{Topic: name, err: err, Done: err == nil})
	}
	return a.printer(s.settings).printTopicResults("deleted", results)
}

// topicDeletePreview shows what a deletion would take away.
func (a *app) topicDeletePreview(cmd *cobra.Command, s *session, names []string) error {
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	results := make([]topicResult, 0, len(names))
	for _, name := range names {
		d, err := s.describeTopic(ctx, name)
		if _, _, down := s.dials.down(); err != nil && down {
			return s.explain(err, "cannot describe %s", name)
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
