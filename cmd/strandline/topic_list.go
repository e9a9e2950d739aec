package main

import (
	"strconv"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"

	"strandline.dev/internal/kafka"
)

func newTopicListCommand(a *app) *cobra.Command {
	var internal bool
	cmd := &cobra.Command{
		Use:   "list [TOPIC...]",
		Short: "List topics with their partitions and replicas",
		Example: `  strandline topic list
  strandline topic list -o json | jq .name
  strandline topic list --internal`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.topicList(cmd, args, internal) },
	}
	cmd.Flags().BoolVar(&internal, "internal", false, "also list the topics the brokers keep for themselves")
	return cmd
}

// listedTopic is one line of `topic list -o json`.
type listedTopic struct {
	Name              string `json:"name"`
	TopicID           string `json:"topicId"`
	PartitionCount    int    `json:"partitionCount"`
	ReplicationFactor int    `json:"replicationFactor"`
	Internal          bool   `json:"internal"`
	Error             string `json:"error,omitempty"`
}

func (a *app) topicList(cmd *cobra.Command, names []string, internal bool) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	details, err := s.admin.ListTopicsWithInternal(ctx, names...)
	if err != nil {
		return s.explain(err, "cannot list topics")
	}
	p := a.printer(s.settings)
	var rows [][]string
	var failed []topicResult
	for _, t := range details.Sorted() {
		if t.Err != nil {
			failed = append(failed, topicResult{Topic: t.Topic, err: t.Err})
			continue
		}
		if t.IsInternal && !internal && len(names) == 0 {
			continue
		}
		row := listTopic(t)
		if p.json {
			if err := p.object(row); err != nil {
				return err
			}
		}
		rows = append(rows, []string{row.Name, strconv.Itoa(row.PartitionCount), strconv.Itoa(row.ReplicationFactor)})
	}
	if !p.json {
		if err := p.table([]string{"NAME", "PARTITIONS", "REPLICAS"}, rows); err != nil {
			return err
		}
	}
	if len(failed) > 0 {
		return printer{w: a.stdout}.printTopicResults("listed", failed)
	}
	return nil
}

func listTopic(t kadm.TopicDetail) listedTopic {
	row := listedTopic{Name: t.Topic, TopicID: kafka.TopicID(t.ID).String(), PartitionCount: len(t.Partitions), Internal: t.IsInternal}
	for _, p := range t.Partitions {
		row.ReplicationFactor = max(row.ReplicationFactor, len(p.Replicas))
	}
	return row
}
