package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// partitionAdding is what `topic add-partitions` is asked to do.
type partitionAdding struct {
	more          int32
	remap, dryRun bool
}

func newTopicAddPartitionsCommand(a *app) *cobra.Command {
	var f partitionAdding
	cmd := &cobra.Command{
		Use:   "add-partitions TOPIC -n N --yes-remap-keys",
		Short: "Add partitions to a topic",
		Long: `Add N partitions to a topic. From then on most keys go to another partition than before, so records of one key are in
order only within the time before and the time after the change. Because this cannot be taken back, it must be confirmed
with --yes-remap-keys. To keep the order of keys, create a new topic with more partitions and move producers there.`,
		Example: `  strandline topic add-partitions orders -n 8 --dry-run
  strandline topic add-partitions orders -n 8 --yes-remap-keys`,
		Args: exactArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.topicAddPartitions(cmd, args[0], f) },

		ValidArgsFunction: a.completeTopics,
	}
	cmd.Flags().Int32VarP(&f.more, "num", "n", 0, "number `N` of partitions to add")
	cmd.Flags().BoolVar(&f.remap, "yes-remap-keys", false, "confirm that keys may move to other partitions")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "let the broker check, print the difference, change nothing")
	return cmd
}

func (a *app) topicAddPartitions(cmd *cobra.Command, topic string, f partitionAdding) error {
	if f.more <= 0 {
		return usagef("give the number of partitions to add: -n N")
	}
	if !f.remap && !f.dryRun {
		return usagef("adding partitions to %s sends most keys to another partition, which breaks their order across the change: confirm with --yes-remap-keys, or look first with --dry-run", topic)
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()

	now, err := s.partitionCount(ctx, topic)
	if err != nil {
		return s.explain(err, "cannot add partitions to %s", topic)
	}
	result := topicResult{Topic: topic, DryRun: f.dryRun}
	result.err = s.setPartitionCount(ctx, topic, now+f.more, f.dryRun)
	if _, _, down := s.dials.down(); result.err != nil && down {
		return s.explain(result.err, "cannot add partitions to %s", topic)
	}
	if result.err == nil {
		result.Done = !f.dryRun
		result.Changes = []change{altered("partitions", strconv.Itoa(int(now)), strconv.Itoa(int(now+f.more)))}
	}
	return a.printer(s.settings).printTopicResults("extended", []topicResult{result})
}

// partitionCount asks for the number of partitions of a topic.
func (s *session) partitionCount(ctx context.Context, topic string) (int32, error) {
	details, err := s.admin.ListTopicsWithInternal(ctx, topic)
	if err != nil {
		return 0, err
	}
	t, ok := details[topic]
	if !ok {
		return 0, kerr.UnknownTopicOrPartition
	}
	return int32(len(t.Partitions)), t.Err
}

// setPartitionCount asks the broker for a total of count partitions.
func (s *session) setPartitionCount(ctx context.Context, topic string, count int32, dryRun bool) error {
	req := kmsg.NewPtrCreatePartitionsRequest()
	req.TimeoutMillis = s.serverMillis()
	req.ValidateOnly = dryRun
	t := kmsg.NewCreatePartitionsRequestTopic()
	t.Topic, t.Count = topic, count
	req.Topics = append(req.Topics, t)
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return err
	}
	if len(resp.Topics) != 1 {
		return errors.New("the broker did not answer for this topic")
	}
	var message string
	if m := resp.Topics[0].ErrorMessage; m != nil {
		message = *m
	}
	return answered(kerr.ErrorForCode(resp.Topics[0].ErrorCode), message)
}
