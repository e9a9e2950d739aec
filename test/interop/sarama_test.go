package interop

import (
	"context"
	"testing"

	"github.com/IBM/sarama"
)

// TestO2_SaramaOfEveryVersion creates a client and a topic, publishes and reads in a group with sarama told that the broker is old
// (V2_8_0_0) and as new as it knows: our ranges cover what it sends, and no connection ends in EOF.
func TestO2_SaramaOfEveryVersion(t *testing.T) {
	b := startBroker(t)
	for _, version := range []sarama.KafkaVersion{sarama.V2_8_0_0, sarama.MaxVersion} {
		t.Run(version.String(), func(t *testing.T) { saramaStory(t, b, version) })
	}
}

func saramaStory(t *testing.T, b *broker, version sarama.KafkaVersion) {
	c := sarama.NewConfig()
	c.Version = version
	c.Producer.Return.Successes = true
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	client, err := sarama.NewClient([]string{b.addr}, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	admin, err := sarama.NewClusterAdminFromClient(client)
	if err != nil {
		t.Fatal(err)
	}
	topic := "o2-" + version.String()
	if err := admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: 1, ReplicationFactor: 1}, false); err != nil {
		t.Fatal(err)
	}
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		t.Fatal(err)
	}
	if _, offset, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Value: sarama.StringEncoder("v")}); err != nil || offset != 0 {
		t.Fatalf("published at %d: %v", offset, err)
	}
	group, err := sarama.NewConsumerGroupFromClient("g-"+version.String(), client)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(deadline(t))
	reader := &oneMessage{got: make(chan string, 1), cancel: cancel}
	if err := group.Consume(ctx, []string{topic}, reader); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-reader.got:
		if got != "v" {
			t.Errorf("read %q", got)
		}
	default:
		t.Error("the group ended without a record")
	}
}

// oneMessage reads one record and ends the session.
type oneMessage struct {
	got    chan string
	cancel context.CancelFunc
}

func (*oneMessage) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (*oneMessage) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (o *oneMessage) ConsumeClaim(s sarama.ConsumerGroupSession, c sarama.ConsumerGroupClaim) error {
	select {
	case m := <-c.Messages():
		s.MarkMessage(m, "")
		o.got <- string(m.Value)
		o.cancel()
	case <-s.Context().Done():
	}
	return nil
}
