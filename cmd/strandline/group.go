package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

func newConsumerGroupCommand(a *app) *cobra.Command {
	return newGroupCommand("group", "List, describe, move and delete consumer groups",
		"List, describe, move and delete consumer groups: who reads what, how far each group has committed, and how far it is behind.",
		newGroupListCommand(a), newGroupDescribeCommand(a), newGroupSeekCommand(a), newGroupDeleteCommand(a))
}

// completeGroups offers group names to the shell, fast or not at all.
func (a *app) completeGroups(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	const none = cobra.ShellCompDirectiveNoFileComp
	s, err := a.connect(kgo.RequestRetries(0))
	if err != nil {
		return nil, none
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	groups, err := s.admin.ListGroups(ctx)
	if err != nil {
		return nil, none
	}
	return groups.Groups(), none
}
