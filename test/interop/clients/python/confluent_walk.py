"""Walks confluent-kafka (librdkafka) through the steps."""

import sys
from importlib.metadata import version

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from walk import CA, PASSWORD, REPLICAS, USER, Client, Deadline, Record, Walk, log

SECURED = {} if CA is None else {
    "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "ssl.ca.location": CA, "sasl.username": USER, "sasl.password": PASSWORD}


def record(m):
    # librdkafka's binding hands out headers as (name, bytes or None).
    return Record(m.key(), m.value(), m.headers() or [], m.partition(), m.offset(), m.timestamp()[1])


class Member:
    def __init__(self, consumer, topic):
        self.consumer, self.topic = consumer, topic

    def next(self):
        m = self.consumer.poll(0.2)
        if m is None:
            return []
        if m.error():
            log("poll:", m.error())
            return []
        return [record(m)]

    def commit(self, offsets):
        self.consumer.commit(offsets=[TopicPartition(self.topic, p, o) for p, o in offsets.items()], asynchronous=False)

    def close(self):
        self.consumer.close()


class Confluent(Client):
    version = version("confluent-kafka")

    def __init__(self, address):
        self.address, self.producers = address, {}
        self.restarted()

    def restarted(self):
        """A new admin client: after its only broker was away, librdkafka 2.16 waits for ever on the coordinator's old handle."""
        self.admin = AdminClient({"bootstrap.servers": self.address, **SECURED})

    def create(self, topic, partitions):
        self.admin.create_topics([NewTopic(topic, partitions, REPLICAS)])[topic].result(30)

    def produce(self, topic, codec, records):
        if codec not in self.producers:
            self.producers[codec] = Producer(
                {"bootstrap.servers": self.address, "compression.type": codec, "enable.idempotence": True, "linger.ms": 20, **SECURED})
        producer, failures = self.producers[codec], []
        for r in records:
            extra = {} if r.at is None else {"timestamp": r.at}
            producer.produce(topic, key=r.key, value=r.value, headers=r.headers, partition=r.partition,
                             on_delivery=lambda e, _: e and failures.append(e), **extra)
        left = producer.flush(60)
        if left or failures:
            raise RuntimeError(f"{left} not delivered, {failures}")

    def consumer(self, group):
        # A short session: a member closed while its coordinator connection is down does not say that it leaves.
        return Consumer({"bootstrap.servers": self.address, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest",
                         "session.timeout.ms": 6000, "heartbeat.interval.ms": 1000, **SECURED})

    def take(self, consumer, n):
        out, deadline = [], Deadline()
        member = Member(consumer, "")
        while len(out) < n:
            deadline.check(f"{len(out)} of {n} records")
            out += member.next()
        return out

    def read(self, topic, partition, start, n):
        consumer = self.consumer("unused")
        try:
            consumer.assign([TopicPartition(topic, partition, start)])
            return self.take(consumer, n)
        finally:
            consumer.close()

    def join(self, group, topic):
        consumer = self.consumer(group)
        consumer.subscribe([topic])
        return Member(consumer, topic)

    def committed(self, group, topic):
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, p) for p in (0, 1)])
        got = self.admin.list_consumer_group_offsets([asked])[group].result(30)
        return {p.partition: p.offset for p in got.topic_partitions}

    def offset_at(self, topic, partition, ms):
        p = TopicPartition(topic, partition)
        return self.admin.list_offsets({p: OffsetSpec.for_timestamp(ms)})[p].result(30).offset

    def seek(self, topic, partition, to):
        consumer = self.consumer("unused")
        try:
            consumer.assign([TopicPartition(topic, partition, 0)])
            self.take(consumer, 1)
            consumer.seek(TopicPartition(topic, partition, to))
            return self.take(consumer, 1)[0].offset
        finally:
            consumer.close()

    def describe(self, group):
        d = self.admin.describe_consumer_groups([group])[group].result(30)
        return d.state.name.capitalize(), len(d.members)

    def reset(self, group, topic, offsets):
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, p, o) for p, o in offsets.items()])
        for p in self.admin.alter_consumer_group_offsets([wanted])[group].result(30).topic_partitions:
            if p.error:
                raise KafkaException(p.error)

    def delete_group(self, group):
        self.admin.delete_consumer_groups([group])[group].result(30)

    def delete_topic(self, topic):
        self.admin.delete_topics([topic])[topic].result(30)

    def topics(self):
        return list(self.admin.list_topics(timeout=30).topics)


Walk(Confluent(sys.argv[1])).run()
