package interop

import (
	"context"
	"fmt"
	"testing"

	"github.com/IBM/sarama"
	rdkafka "github.com/confluentinc/confluent-kafka-go/v2/kafka"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const idHeader = "record-id"

// TestRecordIDs_ScatteredRepeatsAreSuccess: a batch of which every record is stored already, at offsets that do not follow each other, is
// answered with DUPLICATE_SEQUENCE_NUMBER where it has a producer sequence, else without error and without offset: librdkafka without
// idempotence takes that code for a failure. franz-go, sarama and librdkafka report a success both ways and go on.
func TestRecordIDs_ScatteredRepeatsAreSuccess(t *testing.T) {
	b := startBroker(t)
	admin := kadm.NewClient(franz(t, b.addr))
	window := "600000"
	publishers := map[string]func(*testing.T, *broker, string, bool, ...string){"franz-go": publishFranz, "sarama": publishSarama, "librdkafka": publishRdkafka}
	for name, publish := range publishers {
		for _, idempotent := range []bool{true, false} {
			topic := fmt.Sprintf("%s-%v", name, idempotent)
			t.Run(topic, func(t *testing.T) {
				_, err := admin.CreateTopic(deadline(t), 1, 1, map[string]*string{"strandline.dedup.window.ms": &window}, topic)
				if err != nil {
					t.Fatal(err)
				}
				publishFranz(t, b, topic, true, "a", "b", "c")
				publish(t, b, topic, idempotent, "c", "a") // another session, one batch
				publish(t, b, topic, idempotent, "b")
				publish(t, b, topic, idempotent, "d", "a", "e")
				var got string
				for _, r := range readFranz(t, b.addr, topic, 5) {
					got += string(r.Value)
				}
				if got != "abcde" {
					t.Errorf("stored: %s", got)
				}
			})
		}
	}
}

func publishFranz(t *testing.T, b *broker, topic string, idempotent bool, ids ...string) {
	t.Helper()
	var opts []kgo.Opt
	if !idempotent {
		opts = append(opts, kgo.DisableIdempotentWrite())
	}
	c := franz(t, b.addr, append(opts, kgo.DefaultProduceTopic(topic), kgo.ManualFlushing())...)
	failed := make(chan error, len(ids))
	for _, id := range ids {
		r := &kgo.Record{Value: []byte(id), Headers: []kgo.RecordHeader{{Key: idHeader, Value: []byte(id)}}}
		c.Produce(context.Background(), r, func(_ *kgo.Record, err error) { failed <- err })
	}
	if err := c.Flush(deadline(t)); err != nil {
		t.Fatal(err)
	}
	for range ids {
		if err := <-failed; err != nil {
			t.Errorf("%v: %v", ids, err)
		}
	}
}

func publishSarama(t *testing.T, b *broker, topic string, idempotent bool, ids ...string) {
	t.Helper()
	c := sarama.NewConfig()
	c.Version = sarama.V2_8_0_0
	c.Producer.Return.Successes = true
	c.Producer.RequiredAcks = sarama.WaitForAll
	c.Producer.Idempotent = idempotent
	c.Producer.Flush.Messages = len(ids)
	c.Net.MaxOpenRequests = 1
	p, err := sarama.NewSyncProducer([]string{b.addr}, c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	var ms []*sarama.ProducerMessage
	for _, id := range ids {
		ms = append(ms, &sarama.ProducerMessage{
			Topic: topic, Value: sarama.StringEncoder(id), Headers: []sarama.RecordHeader{{Key: []byte(idHeader), Value: []byte(id)}},
		})
	}
	if err := p.SendMessages(ms); err != nil {
		t.Errorf("%v: %v", ids, err)
	}
}

func publishRdkafka(t *testing.T, b *broker, topic string, idempotent bool, ids ...string) {
	t.Helper()
	p, err := rdkafka.NewProducer(&rdkafka.ConfigMap{
		"bootstrap.servers": b.addr, "enable.idempotence": idempotent, "linger.ms": 200, "message.timeout.ms": 30000,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	delivered := make(chan rdkafka.Event, len(ids))
	for _, id := range ids {
		m := &rdkafka.Message{
			TopicPartition: rdkafka.TopicPartition{Topic: &topic, Partition: 0}, Value: []byte(id),
			Headers: []rdkafka.Header{{Key: idHeader, Value: []byte(id)}},
		}
		if err := p.Produce(m, delivered); err != nil {
			t.Fatal(err)
		}
	}
	for range ids {
		if m := (<-delivered).(*rdkafka.Message); m.TopicPartition.Error != nil {
			t.Errorf("%v: %v", ids, m.TopicPartition.Error)
		}
	}
}
