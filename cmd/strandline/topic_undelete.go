package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/kafka"
	"strandline.dev/internal/wire"
)

// undeleteFlags are the flags of `topic undelete`.
type undeleteFlags struct{ as, id string }

func newTopicUndeleteCommand(a *app) *cobra.Command {
	var f undeleteFlags
	cmd := &cobra.Command{
		Use:   "undelete TOPIC",
		Short: "Restore a deleted topic",
		Long: `Restore a deleted topic with its id, records and configs, as long as topic trash says that it can be. Of several deleted topics of that name the
one deleted last is taken, unless --id names another. Group offsets are back too, except those of groups that have committed to a newer topic of the
same name meanwhile. While the name is taken by another topic, the restored one needs another name: --as. Group offsets belong to the old name and do
not come along then.`,
		Example: `  strandline topic undelete orders
  strandline topic undelete orders --as orders-before
  strandline topic undelete orders --id "$(strandline topic trash -o json | jq -r 'select(.name == "orders") | .topicId' | head -1)"`,
		Args: exactArgs("TOPIC"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.topicUndelete(cmd.Context(), args[0], f) },
	}
	cmd.Flags().StringVar(&f.as, "as", "", "restore under this name")
	cmd.Flags().StringVar(&f.id, "id", "", "the id of the topic, where several of that name were deleted")
	return cmd
}

// restored is the line of `topic undelete -o json`.
type restored struct {
	Topic        string `json:"topic"`
	TopicID      string `json:"topicId"`
	TopicVersion int64  `json:"topicVersion"`
	// GroupOffsets says whether the offsets of groups belong to the topic again.
	GroupOffsets bool `json:"groupOffsets"`
}

func (a *app) topicUndelete(ctx context.Context, name string, f undeleteFlags) error {
	from := wire.Restoration{Name: name}
	if f.id != "" {
		id, err := kafka.ParseID(f.id)
		if err != nil || id == (kafka.ID{}) {
			return usagef("--id %q is no topic id: see `strandline topic trash`", f.id)
		}
		from = wire.Restoration{ID: kafka.TopicID(id)}
	}
	as := name
	if f.as != "" {
		as = f.as
	}
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	if f.id != "" {
		if err := s.inTrash(ctx, name, from.ID); err != nil {
			return s.notRestored(err, name)
		}
	}
	r, err := s.restore(ctx, from, as)
	if err != nil {
		return s.notRestored(err, name)
	}
	r.GroupOffsets = as == name
	return a.printer(s.settings).printRestored(r, name)
}

// notRestored is the error of a restoration, with what to do about it.
func (s *session) notRestored(err error, name string) error {
	told := s.explain(err, "topic %s not restored", name)
	var f *failure
	switch {
	case !errors.As(told, &f):
	case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.UnknownTopicID):
		f.todo = "see `strandline topic trash`"
	case errors.Is(err, kerr.TopicAlreadyExists), errors.Is(err, kerr.InvalidTopicException):
		f.todo = "give it another name with --as"
	}
	return told
}

// inTrash makes sure that an id belongs to the name that a person gave with it.
func (s *session) inTrash(ctx context.Context, name string, id kafka.TopicID) error {
	trash, err := s.trash(ctx)
	if err != nil {
		return err
	}
	for _, t := range trash.Topics {
		if t.ID == id && t.Name != name {
			return &brokerError{kerr.UnknownTopicID, fmt.Sprintf("the topic with id %s was named %q", id, t.Name)}
		}
	}
	return nil // the controller says whether it is there
}

// restore asks for a topic back. It is the creation of a topic without partitions: a broker that does not know the tag refuses that.
func (s *session) restore(ctx context.Context, from wire.Restoration, as string) (restored, error) {
	var e wire.Encoder
	from.Append(&e)
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = as, 0, -1
	t.UnknownTags.Set(wire.TagRestoration, e.B)
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis, req.Topics = s.serverMillis(), append(req.Topics, t)
	resp, err := req.RequestWith(ctx, s.client)
	if err != nil {
		return restored{}, err
	}
	if len(resp.Topics) != 1 {
		return restored{}, errNoAnswer
	}
	out := &resp.Topics[0]
	if err := answered(kerr.ErrorForCode(out.ErrorCode), textOf(out.ErrorMessage)); err != nil {
		return restored{}, err
	}
	v, _ := wire.Tagged(&out.UnknownTags, wire.TagRestoration)
	version, err := wire.ReadNumberTag(v)
	if err != nil {
		return restored{}, errNotTold
	}
	return restored{Topic: out.Topic, TopicID: kafka.TopicID(out.TopicID).String(), TopicVersion: version}, nil
}

func (p printer) printRestored(r restored, name string) error {
	if p.json {
		return p.object(r)
	}
	offsets := "group offsets are back, except of groups that have committed to a newer topic of this name meanwhile"
	if !r.GroupOffsets {
		offsets = fmt.Sprintf("group offsets belong to the name %s and were not brought along: groups start on %s as new ones do", name, r.Topic)
	}
	_, err := fmt.Fprintf(p.w, "%s restored, id %s, version %d\n  %s\n", r.Topic, r.TopicID, r.TopicVersion, offsets)
	return err
}
