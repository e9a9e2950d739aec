package interop

import (
	"testing"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"

	"strandline.dev/test/interop/steps"
)

// TestLibrdkafka_ProduceAndConsume runs librdkafka (through confluent-kafka-go): idempotent, every codec, headers, kill -9 between.
func TestLibrdkafka_ProduceAndConsume(t *testing.T) {
	b := startBroker(t)
	ctx := deadline(t)
	admin, err := kafka.NewAdminClient(&kafka.ConfigMap{"bootstrap.servers": b.addr})
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	for codec := range codecs {
		topic := "rd-" + codec
		res, err := admin.CreateTopics(ctx, []kafka.TopicSpecification{{Topic: topic, NumPartitions: 1, ReplicationFactor: 1}})
		if err != nil || res[0].Error.Code() != kafka.ErrNoError {
			t.Fatal(err, res)
		}
		produceRdkafka(t, b, topic, codec)
	}
	b.restart()
	for codec := range codecs {
		consumeRdkafka(t, b, "rd-"+codec)
	}
	_, err = admin.DeleteTopics(ctx, []string{"rd-none"})
	if err != nil {
		t.Fatal(err)
	}
}

func produceRdkafka(t *testing.T, b *broker, topic, codec string) {
	t.Helper()
	p, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": b.addr, "compression.type": codec, "enable.idempotence": true, "linger.ms": 0})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for i, s := range steps.Samples() {
		delivered := make(chan kafka.Event, 1)
		m := &kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic, Partition: 0}, Key: s.Key, Value: s.Value}
		for _, h := range s.Headers {
			m.Headers = append(m.Headers, kafka.Header{Key: h.Key, Value: h.Value})
		}
		if err := p.Produce(m, delivered); err != nil {
			t.Fatal(err)
		}
		if e := (<-delivered).(*kafka.Message); e.TopicPartition.Error != nil {
			t.Fatalf("record %d: %v", i, e.TopicPartition.Error)
		}
	}
}

func consumeRdkafka(t *testing.T, b *broker, topic string) {
	t.Helper()
	c, err := kafka.NewConsumer(&kafka.ConfigMap{"bootstrap.servers": b.addr, "group.id": "unused", "enable.auto.commit": false})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.Assign([]kafka.TopicPartition{{Topic: &topic, Partition: 0, Offset: kafka.OffsetBeginning}}); err != nil {
		t.Fatal(err)
	}
	for i, want := range steps.Samples() {
		m, err := c.ReadMessage(30 * time.Second)
		if err != nil {
			t.Fatalf("%s record %d: %v", topic, i, err)
		}
		got := steps.Record{Offset: int64(m.TopicPartition.Offset), Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			got.Headers = append(got.Headers, steps.Header{Key: h.Key, Value: h.Value})
		}
		// confluent-kafka-go hands out empty keys and values as null, and null header values as empty: librdkafka's
		// bytes are right, its Go binding drops the difference.
		compare(t, want, got, steps.Lenience{Keys: true, Values: true, HeaderValues: true})
	}
}
