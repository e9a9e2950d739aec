package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func newTopicCommand(a *app) *cobra.Command {
	return newGroupCommand("topic", "Create, list, describe, change, delete and restore topics",
		"Create, list, describe, change, delete and restore topics. --dry-run prints the difference and changes nothing.",
		newTopicListCommand(a), newTopicCreateCommand(a), newTopicDescribeCommand(a),
		newTopicSetCommand(a), newTopicAddPartitionsCommand(a), newTopicDeleteCommand(a),
		newTopicUndeleteCommand(a), newTopicTrashCommand(a))
}

// topicResult is the outcome of one change for one topic.
type topicResult struct {
	Topic   string   `json:"topic"`
	TopicID string   `json:"topicId,omitempty"`
	Done    bool     `json:"done"`
	DryRun  bool     `json:"dryRun,omitempty"`
	Changes []change `json:"changes,omitempty"`
	// RecoverableUntil is set after a deletion that can be taken back.
	RecoverableUntil *time.Time `json:"recoverableUntil,omitempty"`
	Error            string     `json:"error,omitempty"`
	err              error
}

// change is one difference: From nil = added, To nil = removed.
type change struct {
	Field string  `json:"field"`
	From  *string `json:"from"`
	To    *string `json:"to"`
}

func (c change) String() string {
	switch {
	case c.From == nil && c.To == nil:
		return c.Field
	case c.From == nil:
		return fmt.Sprintf("+ %s: %s", c.Field, *c.To)
	case c.To == nil:
		return fmt.Sprintf("- %s: %s", c.Field, *c.From)
	}
	return fmt.Sprintf("~ %s: %s -> %s", c.Field, *c.From, *c.To)
}

func added(field, to string) change         { return change{Field: field, To: &to} }
func altered(field, from, to string) change { return change{Field: field, From: &from, To: &to} }

// printTopicResults prints one line (and its changes) per topic and sums the failures up in one error. verb is a past participle.
func (p printer) printTopicResults(verb string, results []topicResult) error {
	var failed []topicResult
	for _, r := range results {
		if r.err != nil {
			r.Error = reason(r.err)
			failed = append(failed, r)
		}
		if err := p.printTopicResult(verb, r); err != nil {
			return err
		}
	}
	switch {
	case len(failed) == 0:
		return nil
	case len(results) == 1:
		return failf(failed[0].err, "topic %s not %s", failed[0].Topic, verb)
	}
	reasons := make([]string, len(failed))
	for i, f := range failed {
		reasons[i] = f.Topic + ": " + f.Error
	}
	return &failure{
		what: fmt.Sprintf("%d of %d topics not %s", len(failed), len(results), verb),
		why:  errors.New(strings.Join(reasons, "; ")),
	}
}

func (p printer) printTopicResult(verb string, r topicResult) error {
	if p.json {
		return p.object(r)
	}
	if r.err != nil {
		return nil // the error line says it
	}
	line := fmt.Sprintf("%s %s", r.Topic, verb)
	if r.DryRun {
		line = fmt.Sprintf("%s would be %s (dry run, nothing changed)", r.Topic, verb)
	}
	if _, err := fmt.Fprintln(p.w, line); err != nil {
		return err
	}
	if r.RecoverableUntil != nil {
		fmt.Fprintf(p.w, "  until %s it can be restored: strandline topic undelete %s\n", r.RecoverableUntil.Format(time.RFC3339), r.Topic)
	}
	for _, c := range r.Changes {
		if _, err := fmt.Fprintln(p.w, "  "+c.String()); err != nil {
			return err
		}
	}
	return nil
}

// parseConfigs reads k=v pairs in the order given; a key given twice is refused, because one of the two would silently lose.
func parseConfigs(pairs []string) ([]change, error) {
	changes := make([]change, 0, len(pairs))
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return nil, usagef("config %q: want key=value", p)
		}
		if slices.ContainsFunc(changes, func(c change) bool { return c.Field == k }) {
			return nil, usagef("config %q is given twice", k)
		}
		changes = append(changes, added(k, v))
	}
	return changes, nil
}
