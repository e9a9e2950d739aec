package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"strandline.dev/internal/wire"
)

// errNotTold says that a broker does not know what docs/formats/topic-requests.md adds to Kafka's requests.
var errNotTold = errors.New("the broker tells neither versions nor the trash: it is no Strandline, or an older one")

// topicLife is what describe shows of a topic besides its partitions and configs.
type topicLife struct {
	TopicVersion int64      `json:"topicVersion,omitempty"`
	Created      *time.Time `json:"created,omitempty"`
	Owner        string     `json:"owner,omitempty"`
}

// String is the line of `topic describe`; "" when nothing is known.
func (l topicLife) String() string {
	if l.Created == nil {
		return ""
	}
	return fmt.Sprintf("version %d, created %s by %s", l.TopicVersion, l.Created.Format(time.RFC3339), l.Owner)
}

// tell asks for metadata with what the brokers of this project add.
func (s *session) tell(ctx context.Context, what byte, topics ...string) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{}
	for i := range topics {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &topics[i]
		req.Topics = append(req.Topics, t)
	}
	req.UnknownTags.Set(wire.TagTopicLife, []byte{what})
	return req.RequestWith(ctx, s.client)
}

// topicLife asks for the life of one topic; errNotTold when the broker does not know of it.
func (s *session) topicLife(ctx context.Context, topic string) (topicLife, error) {
	resp, err := s.tell(ctx, wire.TellLife, topic)
	if err != nil {
		return topicLife{}, err
	}
	for i := range resp.Topics {
		t := &resp.Topics[i]
		if err := kerr.ErrorForCode(t.ErrorCode); err != nil {
			return topicLife{}, err
		}
		v, there := wire.Tagged(&t.UnknownTags, wire.TagTopicLife)
		if life, err := wire.DecodeTopicLife(v); there && err == nil {
			created := time.UnixMilli(life.CreatedMs).UTC()
			return topicLife{TopicVersion: life.Version, Created: &created, Owner: life.Owner}, nil
		}
	}
	return topicLife{}, errNotTold
}

func newTopicTrashCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "trash",
		Short: "List deleted topics that can be restored, and those that are being removed",
		Long: `List deleted topics: until when each can be restored (strandline.delete.recovery.ms, counted from the deletion), and which are being removed
for good. A topic is gone when every node that holds a part of it has removed it; one that is down does so when it returns.`,
		Example: `  strandline topic trash
  strandline topic trash -o json | jq -r 'select(.restorable) | .name'`,
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.topicTrash(cmd) },
	}
}

// trashedTopic is one line of `topic trash -o json`.
type trashedTopic struct {
	Name           string    `json:"name"`
	TopicID        string    `json:"topicId"`
	TopicVersion   int64     `json:"topicVersion"`
	PartitionCount int32     `json:"partitionCount"`
	Deleted        time.Time `json:"deleted"`
	DeletedBy      string    `json:"deletedBy"`
	Restorable     bool      `json:"restorable"`
	// RecoverableUntil is when the removal begins, or began.
	RecoverableUntil time.Time `json:"recoverableUntil"`
	// ReplicasLeft are still to be removed.
	ReplicasLeft int32 `json:"replicasLeft,omitempty"`
}

func (a *app) topicTrash(cmd *cobra.Command) error {
	s, err := a.connect()
	if err != nil {
		return err
	}
	defer s.close()
	ctx, cancel := s.bounded(cmd.Context())
	defer cancel()
	trash, err := s.trash(ctx)
	if err != nil {
		return s.explain(err, "cannot see the trash")
	}
	p := a.printer(s.settings)
	var rows [][]string
	for _, t := range trash.Topics {
		line := trashedTopic{
			Name: t.Name, TopicID: t.ID.String(), TopicVersion: t.Version, PartitionCount: t.Partitions, Deleted: time.UnixMilli(t.DeletedMs).UTC(),
			DeletedBy: t.DeletedBy, Restorable: !t.Purging, RecoverableUntil: time.UnixMilli(t.PurgeAtMs).UTC(), ReplicasLeft: t.Pending,
		}
		if p.json {
			if err := p.object(line); err != nil {
				return err
			}
			continue
		}
		until := line.RecoverableUntil.Format(time.RFC3339)
		if t.Purging {
			until = fmt.Sprintf("(being removed, %d replicas left)", t.Pending)
		}
		rows = append(rows, []string{t.Name, line.TopicID, fmt.Sprint(t.Partitions), line.Deleted.Format(time.RFC3339), t.DeletedBy, until})
	}
	if err := p.table([]string{"NAME", "ID", "PARTITIONS", "DELETED", "BY", "RESTORABLE UNTIL"}, rows); err != nil {
		return err
	}
	if more := int(trash.Total) - len(trash.Topics); more > 0 {
		fmt.Fprintf(a.stderr, "and %d more, which are not listed\n", more)
	}
	return nil
}

func (s *session) trash(ctx context.Context) (wire.Trash, error) {
	resp, err := s.tell(ctx, wire.TellTrash)
	if err != nil {
		return wire.Trash{}, err
	}
	v, there := wire.Tagged(&resp.UnknownTags, wire.TagTrash)
	if !there {
		return wire.Trash{}, errNotTold
	}
	return wire.DecodeTrash(v)
}
