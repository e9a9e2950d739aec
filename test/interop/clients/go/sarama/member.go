package main

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/IBM/sarama"

	"strandline.dev/test/interop/steps"
)

// member is a consumer in a group; sarama pushes, the walk pulls.
type member struct {
	group  sarama.ConsumerGroup
	topic  string
	pushed chan *sarama.ConsumerMessage
	cancel context.CancelFunc
	done   chan struct{}

	mu      sync.Mutex
	session sarama.ConsumerGroupSession
}

func (c *client) join(_ context.Context, group, topic string) (*steps.Member, error) {
	g, err := sarama.NewConsumerGroup(c.addr, group, config())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{group: g, topic: topic, pushed: make(chan *sarama.ConsumerMessage), cancel: cancel, done: make(chan struct{})}
	go m.run(ctx)
	return &steps.Member{Next: m.next, Commit: m.commit, Close: m.close}, nil
}

// run enters session after session, as sarama's documentation asks.
func (m *member) run(ctx context.Context) {
	defer close(m.done)
	for ctx.Err() == nil {
		if err := m.group.Consume(ctx, []string{m.topic}, m); err != nil {
			fmt.Fprintln(os.Stderr, "session:", err)
		}
	}
}

func (m *member) Setup(s sarama.ConsumerGroupSession) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.session = s
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (m *member) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case msg, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			select {
			case m.pushed <- msg:
			case <-s.Context().Done():
				return nil
			}
		case <-s.Context().Done():
			return nil
		}
	}
}

func (m *member) next(ctx context.Context) ([]steps.Record, error) {
	select {
	case msg := <-m.pushed:
		return []steps.Record{record(msg)}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *member) commit(_ context.Context, offsets map[int32]int64) error {
	m.mu.Lock()
	s := m.session
	m.mu.Unlock()
	for p, o := range offsets {
		s.MarkOffset(m.topic, p, o, "")
	}
	s.Commit()
	return nil
}

func (m *member) close() error {
	m.cancel()
	<-m.done
	return m.group.Close()
}
