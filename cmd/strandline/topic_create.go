package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"strandline.dev/internal/kafka"
)

// topicCreateFlags are the flags of `topic create`.
type topicCreateFlags struct {
	partitions  int32
	replication int16
	configs     []string
	dryRun      bool
}

func newTopicCreateCommand(a *app) *cobra.Command {
	var f topicCreateFlags
	cmd := &cobra.Command{
		Use:   "create TOPIC...",
		Short: "Create topics",
		Long: `Create topics. Without -p and -r the broker's num.partitions and default.replication.factor hold.
A topic is created whole or not at all. It remembers record ids for two minutes (strandline.dedup.window.ms=120000) unless -c says otherwise.`,
		Example: `  strandline topic create orders -p 64 -r 3
  strandline topic create orders -p 8 -c retention.ms=3600000 -c strandline.flush=synced
  strandline topic create metrics -p 8 -c strandline.dedup.window.ms=0
  strandline topic create orders -p 8 --dry-run`,
		Args: atLeastArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.topicCreate(cmd, args, f) },
	}
	cmd.Flags().Int32VarP(&f.partitions, "partitions", "p", -1, "number `N` of partitions (-1: the broker's default)")
	cmd.Flags().Int16VarP(&f.replication, "replicas", "r", -1, "replicas `N` of each partition (-1: the broker's default)")
	cmd.Flags().StringArrayVarP(&f.configs, "config", "c", nil, "topic config `key=value` (repeatable)")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "let the broker check, print the difference, create nothing")
	return cmd
}

func (a *app) topicCreate(cmd *cobra.Command, names []string, f topicCreateFlags) error {
	changes, err := parseConfigs(f.configs)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(changes, func(c change) bool { return c.Field == dedupWindowConfig }) {
		changes = append(changes, added(dedupWindowConfig, dedupWindowDefault))
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()

	responses, err := s.createTopics(ctx, names, f, changes)
	if err != nil {
		return s.explain(err, "cannot create %s", names[0])
	}
	results := make([]topicResult, 0, len(names))
	for _, name := range names {
		r := responses[name]
		result := topicResult{Topic: name, err: answered(r.Err, r.ErrMessage), DryRun: f.dryRun}
		result.Done = result.err == nil && !f.dryRun
		if result.err == nil {
			result.Changes = append([]change{
				added("partitions", countOr(r.NumPartitions, f.partitions)),
				added("replicas", countOr(int32(r.ReplicationFactor), int32(f.replication))),
			}, changes...)
			if result.Done {
				result.TopicID = kafka.TopicID(r.ID).String()
			}
		}
		results = append(results, result)
	}
	return a.printer(s.settings).printTopicResults("created", results)
}

func (s *session) createTopics(ctx context.Context, names []string, f topicCreateFlags, configs []change) (kadm.CreateTopicResponses, error) {
	values := make(map[string]*string, len(configs))
	for _, c := range configs {
		values[c.Field] = c.To
	}
	if f.dryRun {
		return s.admin.ValidateCreateTopics(ctx, f.partitions, f.replication, values, names...)
	}
	return s.admin.CreateTopics(ctx, f.partitions, f.replication, values, names...)
}

// countOr renders the count the broker answered, or else the one asked for, or else that the broker's default holds.
func countOr(answered, asked int32) string {
	switch {
	case answered > 0:
		return fmt.Sprint(answered)
	case asked > 0:
		return fmt.Sprint(asked)
	}
	return "the broker's default"
}
