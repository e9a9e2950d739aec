package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
)

func newGroupDeleteCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "delete GROUP...",
		Short: "Delete consumer groups and their committed offsets",
		Long: `Delete consumer groups with their committed offsets; records stay. A group with members is refused: stop them first. On a terminal
you are asked first; -y answers yes.`,
		Example: `  strandline group delete billing
  strandline group delete billing shipping -y`,
		Args: atLeastArgs("GROUP"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.groupDelete(cmd, args) },

		ValidArgsFunction: a.completeGroups,
	}
	return cmd
}

// deletedGroup is one line of `group delete -o json`.
type deletedGroup struct {
	Group string `json:"group"`
	Done  bool   `json:"done"`
	Error string `json:"error,omitempty"`
}

func (a *app) groupDelete(cmd *cobra.Command, names []string) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	if err := a.confirm(s.settings, fmt.Sprintf("Delete %s and where each has got to?", strings.Join(names, ", "))); err != nil {
		return err
	}
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	answers, err := s.admin.DeleteGroups(ctx, names...)
	if err != nil {
		return s.explain(err, "cannot delete %s", names[0])
	}
	p := a.printer(s.settings)
	var failed []string
	var last error
	for _, name := range names {
		r := deletedGroup{Group: name, Done: answers[name].Err == nil}
		if !r.Done {
			last = answers[name].Err
			r.Error = reason(last)
			failed = append(failed, name+": "+r.Error)
		}
		switch {
		case p.json:
			err = p.object(r)
		case r.Done:
			_, err = fmt.Fprintf(p.w, "%s deleted\n", name)
		}
		if err != nil {
			return err
		}
	}
	switch {
	case len(failed) == 0:
		return nil
	case len(names) == 1:
		return &failure{what: fmt.Sprintf("group %s not deleted", names[0]), why: last, todo: groupAdvice(last)}
	}
	return &failure{what: fmt.Sprintf("%d of %d groups not deleted", len(failed), len(names)), why: errors.New(strings.Join(failed, "; "))}
}

// groupAdvice is the "what to do" of an error about a group.
func groupAdvice(err error) string {
	switch {
	case errors.Is(err, kerr.NonEmptyGroup):
		return "stop its members first; see them with `strandline group describe`"
	case errors.Is(err, kerr.GroupIDNotFound):
		return "see `strandline group list`"
	}
	return ""
}
