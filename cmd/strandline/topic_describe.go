package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"strandline.dev/internal/kafka"
)

// describeParts says which parts of a description are wanted.
type describeParts struct{ partitions, configs, all bool }

func newTopicDescribeCommand(a *app) *cobra.Command {
	var parts describeParts
	cmd := &cobra.Command{
		Use:   "describe TOPIC...",
		Short: "Show the partitions and the configuration of topics",
		Long: `Show topics: id, version, creation and owner; for each partition its leader, leader epoch, replicas, in-sync replicas, first offset, high watermark, and where
the log of each replica ends, with how many records it is behind its leader (-N); and each config with the place it comes from; in words, what an acknowledgement means and how long record ids are remembered. Without -p and -c both parts are shown.`,
		Example: `  strandline topic describe orders
  strandline topic describe orders -p
  strandline topic describe orders -c -o json | jq '.configs[] | select(.source == "DYNAMIC_TOPIC_CONFIG")'`,
		Args: atLeastArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.topicDescribe(cmd, args, parts) },

		ValidArgsFunction: a.completeTopics,
	}
	cmd.Flags().BoolVarP(&parts.partitions, "partitions", "p", false, "show only the partitions")
	cmd.Flags().BoolVarP(&parts.configs, "configs", "c", false, "show only the configs")
	cmd.Flags().BoolVarP(&parts.all, "all", "a", false, "show everything (the default)")
	return cmd
}

// describedTopic is one line of `topic describe -o json`.
type describedTopic struct {
	Name       string               `json:"name"`
	TopicID    string               `json:"topicId"`
	Internal   bool                 `json:"internal"`
	topicLife                       // absent: the broker does not tell
	Partitions []describedPartition `json:"partitions,omitempty"`
	Configs    []describedConfig    `json:"configs,omitempty"`
	repeats    string               // in words, what becomes of a repeated record id
}

type describedPartition struct {
	Partition     int32   `json:"partition"`
	Leader        int32   `json:"leader"` // -1: none
	LeaderEpoch   int32   `json:"leaderEpoch"`
	Replicas      []int32 `json:"replicas"`
	ISR           []int32 `json:"isr"`
	Offline       []int32 `json:"offlineReplicas,omitempty"`
	LogStart      int64   `json:"logStart"`            // -1: unknown
	HighWatermark int64   `json:"highWatermark"`       // -1: unknown
	RecordIDs     *int64  `json:"recordIds,omitempty"` // remembered by the leader; absent: unknown
	// ReplicaEnds are the replicas that answered.
	ReplicaEnds []describedReplica `json:"replicaEnds,omitempty"`
	Error       string             `json:"error,omitempty"`
}

type describedConfig struct {
	Name      string  `json:"name"`
	Value     *string `json:"value"`
	Source    string  `json:"source"`
	Sensitive bool    `json:"sensitive,omitempty"`
}

func (a *app) topicDescribe(cmd *cobra.Command, names []string, parts describeParts) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	p := a.printer(s.settings)
	both := parts.all || parts.partitions == parts.configs
	var failed []topicResult
	for i, name := range names {
		ctx, cancel := s.bounded(cmd.Context())
		d, err := s.describeTopic(ctx, name)
		cancel()
		if err != nil {
			if _, _, down := s.dials.down(); down || len(names) == 1 {
				return s.explain(err, "cannot describe %s", name)
			}
			failed = append(failed, topicResult{Topic: name, err: err})
			continue
		}
		if !both && !parts.partitions {
			d.Partitions = nil
		}
		if !both && !parts.configs {
			d.Configs = nil
		}
		if err := p.printDescribed(d, i > 0); err != nil {
			return err
		}
	}
	return printer{w: a.stdout}.printTopicResults("described", failed)
}

func (p printer) printDescribed(d describedTopic, separate bool) error {
	if p.json {
		return p.object(d)
	}
	if separate {
		fmt.Fprintln(p.w)
	}
	if !p.noHeader {
		fmt.Fprintf(p.w, "topic %s, id %s\n", d.Name, d.TopicID)
		for _, s := range []string{d.topicLife.String(), storedMeaning(d.Configs), d.repeats} {
			if s != "" {
				fmt.Fprintln(p.w, s)
			}
		}
	}
	var rows [][]string
	for _, q := range d.Partitions {
		rows = append(rows, []string{
			fmt.Sprint(q.Partition), fmt.Sprint(q.Leader), fmt.Sprint(q.LeaderEpoch), fmt.Sprint(q.Replicas), fmt.Sprint(q.ISR),
			offsetOr(q.LogStart), offsetOr(q.HighWatermark), replicaEnds(q.ReplicaEnds), q.Error,
		})
	}
	err := p.table([]string{"PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "START", "HIGH-WATERMARK", "LOG-END", ""}, rows)
	if err != nil {
		return err
	}
	rows = rows[:0]
	for _, c := range d.Configs {
		value := "(hidden)"
		if c.Value != nil {
			value = *c.Value
		}
		rows = append(rows, []string{c.Name, value, c.Source})
	}
	return p.table([]string{"CONFIG", "VALUE", "SOURCE"}, rows)
}

// storedMeaning says in words what an acknowledgement of this topic is worth; "" when the broker does not tell.
func storedMeaning(configs []describedConfig) string {
	i := slices.IndexFunc(configs, func(c describedConfig) bool { return c.Name == "strandline.flush" && c.Value != nil })
	if i < 0 {
		return ""
	}
	switch *configs[i].Value {
	case "synced":
		return "acks=all means: on disk (strandline.flush=synced)"
	case "replicated":
		return "acks=all means: written by every in-sync replica, not necessarily on disk (strandline.flush=replicated)"
	}
	return ""
}

func offsetOr(offset int64) string {
	if offset < 0 {
		return "-"
	}
	return fmt.Sprint(offset)
}

// describeTopic gathers one topic from metadata, offsets and configs.
func (s *session) describeTopic(ctx context.Context, name string) (describedTopic, error) {
	details, err := s.admin.ListTopicsWithInternal(ctx, name)
	if err != nil {
		return describedTopic{}, err
	}
	t, ok := details[name]
	if !ok {
		return describedTopic{}, kerr.UnknownTopicOrPartition
	}
	if t.Err != nil {
		return describedTopic{}, t.Err
	}
	life, err := s.topicLife(ctx, name)
	if err != nil && !errors.Is(err, errNotTold) {
		return describedTopic{}, err
	}
	starts, ends, err := s.bothEnds(ctx, t)
	if err != nil {
		return describedTopic{}, err
	}
	d := describedTopic{Name: name, TopicID: kafka.TopicID(t.ID).String(), Internal: t.IsInternal, topicLife: life}
	for _, p := range t.Partitions.Sorted() {
		d.Partitions = append(d.Partitions, describePartition(p, starts, ends))
	}
	s.markOffline(ctx, name, d.Partitions)
	s.markReplicas(ctx, name, d.Partitions)
	configs, err := s.topicConfigs(ctx, name)
	if err != nil {
		return describedTopic{}, err
	}
	for _, c := range configs {
		d.Configs = append(d.Configs, describedConfig{Name: c.Key, Value: c.Value, Source: c.Source.String(), Sensitive: c.Sensitive})
	}
	d.repeats = repeatMeaning(d)
	return d, nil
}

// bothEnds is where the partitions of a topic start and end. Only leaders know: where there is none, nobody is asked and nothing is known.
func (s *session) bothEnds(ctx context.Context, t kadm.TopicDetail) (starts, ends kadm.ListedOffsets, err error) {
	led := false
	for _, p := range t.Partitions {
		led = led || p.Leader >= 0
	}
	if !led {
		return nil, nil, nil
	}
	if starts, err = s.admin.ListStartOffsets(ctx, t.Topic); err != nil && len(starts) == 0 {
		return nil, nil, err
	}
	if ends, err = s.admin.ListEndOffsets(ctx, t.Topic); err != nil && len(ends) == 0 {
		return nil, nil, err
	}
	return starts, ends, nil
}

func describePartition(p kadm.PartitionDetail, starts, ends kadm.ListedOffsets) describedPartition {
	d := describedPartition{
		Partition: p.Partition, Leader: p.Leader, LeaderEpoch: p.LeaderEpoch,
		Replicas: orderedReplicas(p.Replicas), ISR: orderedReplicas(p.ISR), Offline: p.OfflineReplicas,
		LogStart: -1, HighWatermark: -1,
	}
	var problems []string
	if p.Err != nil {
		problems = append(problems, reason(p.Err))
	}
	for _, l := range []struct {
		listed kadm.ListedOffsets
		into   *int64
	}{{starts, &d.LogStart}, {ends, &d.HighWatermark}} {
		o, ok := l.listed.Lookup(p.Topic, p.Partition)
		switch {
		case !ok:
		case o.Err != nil:
			problems = append(problems, reason(o.Err))
		default:
			*l.into = o.Offset
		}
	}
	d.Error = strings.Join(slices.Compact(problems), "; ")
	return d
}

// orderedReplicas keeps the order the broker gives (preferred leader first) and never prints null.
func orderedReplicas(r []int32) []int32 {
	if r == nil {
		return []int32{}
	}
	return r
}
