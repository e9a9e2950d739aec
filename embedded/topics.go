package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Topic is a topic to create.
type Topic struct {
	Name       string
	Partitions int32             // 0: 1
	Replicas   int16             // 0: 3 where there are as many nodes, else as many as there are
	Configs    map[string]string // topic settings by their Kafka names, "retention.ms"
}

// createTopics makes the topics and waits until each partition has a leader that answers.
func createTopics(ctx context.Context, brokers []string, topics []Topic) error {
	if len(topics) == 0 {
		return nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DisableClientMetrics())
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	var names []string
	for _, topic := range topics {
		configs := map[string]*string{}
		for name, value := range topic.Configs {
			configs[name] = &value
		}
		replicas := topic.Replicas
		if replicas == 0 {
			replicas = -1 // the broker's default
		}
		answer, err := admin.CreateTopic(ctx, max(topic.Partitions, 1), replicas, configs, topic.Name)
		if err != nil && !errors.Is(err, kerr.TopicAlreadyExists) {
			if answer.ErrMessage != "" {
				err = fmt.Errorf("%w: %s", err, answer.ErrMessage)
			}
			return fmt.Errorf("topic %q: %w", topic.Name, err)
		}
		names = append(names, topic.Name)
	}
	for {
		ends, err := admin.ListEndOffsets(ctx, names...)
		if err == nil {
			err = ends.Error()
		}
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("topics without leaders: %w", errors.Join(ctx.Err(), err))
		case <-time.After(topicRetryPause):
		}
	}
}
