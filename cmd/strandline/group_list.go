package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// groupStates are those that a group can be shown in.
var groupStates = []string{"Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "Stable"}

func newGroupListCommand(a *app) *cobra.Command {
	var states []string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List consumer groups with their state",
		Long: `List consumer groups, also those without members. States: Empty (no members), PreparingRebalance (members join),
CompletingRebalance or Assigning (partitions are assigned), Reconciling (partitions go from one member to another), Stable. TYPE is the protocol that its
members speak: classic, or consumer (KIP-848); PROTOCOL is what a classic group is for, consumer or another.`,
		Example: `  strandline group list
  strandline group list --state empty
  strandline group list -o json | jq -r .group`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, state := range states {
				if !slices.ContainsFunc(groupStates, func(s string) bool { return strings.EqualFold(s, state) }) {
					return usagef("--state %q: there are %s", state, strings.Join(groupStates, ", "))
				}
			}
			return a.groupList(cmd, states)
		},
	}
	cmd.Flags().StringSliceVar(&states, "state", nil, "only groups in these states")
	return cmd
}

// listedGroup is one line of `group list -o json`.
type listedGroup struct {
	Group        string `json:"group"`
	State        string `json:"state"`
	Type         string `json:"type,omitempty"` // classic or consumer: the protocol that its members speak
	ProtocolType string `json:"protocolType"`
	Coordinator  int32  `json:"coordinator"`
}

func (a *app) groupList(cmd *cobra.Command, states []string) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	groups, err := s.admin.ListGroups(ctx, states...)
	if err != nil {
		return s.explain(err, "cannot list groups")
	}
	p := a.printer(s.settings)
	var rows [][]string
	for _, g := range groups.Sorted() {
		row := listedGroup{Group: g.Group, State: g.State, Type: g.GroupType, ProtocolType: g.ProtocolType, Coordinator: g.Coordinator}
		if p.json {
			if err := p.object(row); err != nil {
				return err
			}
		}
		rows = append(rows, []string{row.Group, row.State, orDash(row.Type), orDash(row.ProtocolType)})
	}
	if p.json {
		return nil
	}
	return p.table([]string{"GROUP", "STATE", "TYPE", "PROTOCOL"}, rows)
}

// orDash stands in for a text that is not there, so that columns stay columns.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
