package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func newTopicSetCommand(a *app) *cobra.Command {
	var unset []string
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "set TOPIC [KEY=VALUE...]",
		Short: "Change the configuration of a topic",
		Long:  "Change configs of a topic and leave its other configs as they are; --unset takes a config back to its default.",
		Example: `  strandline topic set orders retention.ms=86400000
  strandline topic set orders --unset retention.ms
  strandline topic set orders max.message.bytes=2097152 --dry-run`,
		Args: atLeastArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.topicSet(cmd, args[0], topicSetting{pairs: args[1:], unset: unset, dryRun: dryRun})
		},
		ValidArgsFunction: a.completeTopics,
	}
	cmd.Flags().StringArrayVar(&unset, "unset", nil, "take the config `KEY` back to its default (repeatable)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "let the broker check, print the difference, change nothing")
	return cmd
}

// topicSetting is what `topic set` is asked to change.
type topicSetting struct {
	pairs, unset []string
	dryRun       bool
}

func (a *app) topicSet(cmd *cobra.Command, topic string, t topicSetting) error {
	wanted, err := parseConfigs(t.pairs)
	if err != nil {
		return err
	}
	if len(wanted)+len(t.unset) == 0 {
		return usagef("nothing to set: give KEY=VALUE or --unset KEY")
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()

	current, err := s.topicConfigs(ctx, topic)
	if err != nil {
		return s.explain(err, "cannot read the configs of %s", topic)
	}
	result := topicResult{Topic: topic, DryRun: t.dryRun, Changes: configDifference(current, wanted, t.unset)}
	result.err = s.alterTopic(ctx, topic, alterations(wanted, t.unset), t.dryRun)
	if address, _, down := s.dials.down(); result.err != nil && down {
		return s.explain(result.err, "cannot change %s at %s", topic, address)
	}
	result.Done = result.err == nil && !t.dryRun
	return a.printer(s.settings).printTopicResults("changed", []topicResult{result})
}

// topicConfigs reads the effective configs of one topic.
func (s *session) topicConfigs(ctx context.Context, topic string) ([]kadm.Config, error) {
	resources, err := s.admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return nil, err
	}
	r, err := resources.On(topic, nil) // err: the broker did not answer for this topic
	if err == nil {
		err = answered(r.Err, r.ErrMessage)
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(r.Configs, func(x, y kadm.Config) int { return cmp.Compare(x.Key, y.Key) })
	return r.Configs, nil
}

func alterations(wanted []change, unset []string) []kadm.AlterConfig {
	var ops []kadm.AlterConfig
	for _, w := range wanted {
		ops = append(ops, kadm.AlterConfig{Op: kadm.SetConfig, Name: w.Field, Value: w.To})
	}
	for _, key := range unset {
		ops = append(ops, kadm.AlterConfig{Op: kadm.DeleteConfig, Name: key})
	}
	return ops
}

func (s *session) alterTopic(ctx context.Context, topic string, ops []kadm.AlterConfig, dryRun bool) error {
	alter := s.admin.AlterTopicConfigs
	if dryRun {
		alter = s.admin.ValidateAlterTopicConfigs
	}
	responses, err := alter(ctx, ops, topic)
	if err != nil {
		return err
	}
	r, err := responses.On(topic, nil) // err: the broker did not answer for this topic
	if err != nil {
		return err
	}
	return answered(r.Err, r.ErrMessage)
}

// configDifference lists what would change; a value that is set already is no difference.
func configDifference(current []kadm.Config, wanted []change, unset []string) []change {
	var diff []change
	for _, w := range wanted {
		c, known := findConfig(current, w.Field)
		switch {
		case !known:
			diff = append(diff, w)
		case c.MaybeValue() != *w.To || c.Source != kmsg.ConfigSourceDynamicTopicConfig:
			diff = append(diff, altered(w.Field, c.MaybeValue(), *w.To))
		}
	}
	for _, key := range unset {
		c, known := findConfig(current, key)
		if !known || c.Source != kmsg.ConfigSourceDynamicTopicConfig {
			continue
		}
		fallback := slices.IndexFunc(c.Synonyms, func(s kadm.ConfigSynonym) bool {
			return s.Source != kmsg.ConfigSourceDynamicTopicConfig && s.Value != nil
		})
		if fallback < 0 {
			diff = append(diff, change{Field: key, From: c.Value})
			continue
		}
		diff = append(diff, altered(key, c.MaybeValue(), *c.Synonyms[fallback].Value))
	}
	return diff
}

func findConfig(configs []kadm.Config, key string) (kadm.Config, bool) {
	i := slices.IndexFunc(configs, func(c kadm.Config) bool { return c.Key == key })
	if i < 0 {
		return kadm.Config{}, false
	}
	return configs[i], true
}
