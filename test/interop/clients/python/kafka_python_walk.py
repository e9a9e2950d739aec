"""Walks kafka-python through the steps."""

import logging
import sys
from importlib.metadata import version

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from walk import CA, PASSWORD, REPLICAS, USER, Client, Deadline, Record, Walk

SECURED = {} if CA is None else {
    "security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "ssl_cafile": CA, "sasl_plain_username": USER, "sasl_plain_password": PASSWORD}

logging.basicConfig(level=logging.WARNING)


def record(m):
    return Record(m.key, m.value, m.headers, m.partition, m.offset, m.timestamp)


class Member:
    def __init__(self, consumer, topic):
        self.consumer, self.topic = consumer, topic

    def next(self):
        return [record(m) for rs in self.consumer.poll(timeout_ms=200).values() for m in rs]

    def commit(self, offsets):
        self.consumer.commit({TopicPartition(self.topic, p): OffsetAndMetadata(o, "", -1) for p, o in offsets.items()})

    def close(self):
        self.consumer.close()


class KafkaPython(Client):
    version = version("kafka-python")
    lacks = {"null-headers": "kafka-python's header values cannot be null"}

    def __init__(self, address):
        self.address, self.producers = address, {}
        self.admin = KafkaAdminClient(bootstrap_servers=address, **SECURED)

    def create(self, topic, partitions):
        self.admin.create_topics({topic: {"num_partitions": partitions, "replication_factor": REPLICAS}})

    def produce(self, topic, codec, records):
        if codec not in self.producers:
            self.producers[codec] = KafkaProducer(
                bootstrap_servers=self.address, acks="all", linger_ms=20, compression_type=None if codec == "none" else codec, **SECURED)
        sent = [
            self.producers[codec].send(topic, key=r.key, value=r.value, headers=[(k, v or b"") for k, v in r.headers], partition=r.partition, timestamp_ms=r.at)
            for r in records
        ]
        for future in sent:
            future.get(timeout=60)

    def consumer(self, group=None):
        return KafkaConsumer(bootstrap_servers=self.address, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest", **SECURED)

    def take(self, consumer, n):
        out, deadline, member = [], Deadline(), Member(consumer, "")
        while len(out) < n:
            deadline.check(f"{len(out)} of {n} records")
            out += member.next()
        return out

    def read(self, topic, partition, start, n):
        consumer = self.consumer()
        try:
            consumer.assign([TopicPartition(topic, partition)])
            consumer.seek(TopicPartition(topic, partition), start)
            return self.take(consumer, n)
        finally:
            consumer.close()

    def join(self, group, topic):
        consumer = self.consumer(group)
        consumer.subscribe([topic])
        return Member(consumer, topic)

    def committed(self, group, topic):
        asked = [TopicPartition(topic, p) for p in (0, 1)]
        got = self.admin.list_group_offsets({group: asked})[group]
        return {p.partition: o.offset for p, o in got.items()}

    def offset_at(self, topic, partition, ms):
        p = TopicPartition(topic, partition)
        return self.admin.list_partition_offsets({p: ms})[p].offset

    def seek(self, topic, partition, to):
        consumer, p = self.consumer(), TopicPartition(topic, partition)
        try:
            consumer.assign([p])
            self.take(consumer, 1)
            consumer.seek(p, to)
            return self.take(consumer, 1)[0].offset
        finally:
            consumer.close()

    def describe(self, group):
        d = self.admin.describe_groups([group])[group]
        return d["group_state"], len(d["members"])

    def reset(self, group, topic, offsets):
        wanted = {TopicPartition(topic, p): OffsetAndMetadata(o, "", -1) for p, o in offsets.items()}
        for p, error in self.admin.alter_group_offsets(group, wanted).items():
            if error.errno != 0:
                raise error(str(p))

    def delete_group(self, group):
        result = self.admin.delete_groups([group])
        if result != {group: "OK"}:
            raise RuntimeError(str(result))

    def delete_topic(self, topic):
        self.admin.delete_topics([topic])

    def topics(self):
        return self.admin.list_topics()


Walk(KafkaPython(sys.argv[1])).run()
