"""Walks aiokafka through the steps; its coroutines run to their end one by one on one loop."""

import asyncio
import logging
import sys
import time
from importlib.metadata import version

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import NodeNotReadyError, for_code
from aiokafka.helpers import create_ssl_context

from walk import CA, PASSWORD, REPLICAS, USER, Client, Record, Walk, log

logging.basicConfig(level=logging.WARNING)
STEP_TIME_MAX = 70
SECURED = {} if CA is None else {
    "security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "ssl_context": create_ssl_context(cafile=CA),
    "sasl_plain_username": USER, "sasl_plain_password": PASSWORD}


def record(m):
    return Record(m.key, m.value, m.headers, m.partition, m.offset, m.timestamp)


def refuse(code, what):
    if code:
        raise for_code(code)(what)


class Member:
    def __init__(self, client, consumer, topic):
        self.client, self.consumer, self.topic = client, consumer, topic

    def next(self):
        got = self.client.do(self.consumer.getmany(timeout_ms=200))
        return [record(m) for rs in got.values() for m in rs]

    def commit(self, offsets):
        self.client.do(self.consumer.commit({TopicPartition(self.topic, p): o for p, o in offsets.items()}))

    def close(self):
        try:
            self.client.do(self.consumer.stop())
        except asyncio.CancelledError:
            # aiokafka 0.14 has left the group by then, but does not expect its own cancelling of a fetch that rests after a failure.
            log("the consumer's stop was cancelled by itself")


class AioKafka(Client):
    version = version("aiokafka")
    lacks = {"delete-group": "aiokafka's admin client has no deletion of groups"}

    def __init__(self, address):
        self.address, self.producers = address, {}
        self.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self.loop)
        self.admin = self.do(self.start(lambda: AIOKafkaAdminClient(bootstrap_servers=address, **SECURED)))

    def do(self, coroutine):
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, STEP_TIME_MAX))

    def ask(self, call):
        """Repeats what the admin client refuses because its metadata does not name a broker that has come back; it asks for newer ones by that."""
        end = time.monotonic() + STEP_TIME_MAX
        while True:
            try:
                return self.do(call())
            except NodeNotReadyError:
                if time.monotonic() > end:
                    raise
                self.do(asyncio.sleep(0.1))

    async def start(self, make):
        thing = make()
        await thing.start()
        return thing

    def create(self, topic, partitions):
        answer = self.do(self.admin.create_topics([NewTopic(topic, partitions, REPLICAS)]))
        for error in answer.topic_errors:
            refuse(error[1], topic)

    async def send(self, producer, topic, records):
        sent = [
            await producer.send(topic, key=r.key, value=r.value, headers=r.headers, partition=r.partition, timestamp_ms=r.at)
            for r in records
        ]
        await asyncio.gather(*sent)

    def produce(self, topic, codec, records):
        if codec not in self.producers:
            compression = None if codec == "none" else codec
            self.producers[codec] = self.do(self.start(lambda: AIOKafkaProducer(
                bootstrap_servers=self.address, enable_idempotence=True, linger_ms=20, compression_type=compression, **SECURED)))
        self.do(self.send(self.producers[codec], topic, records))

    def consumer(self, *topics, group=None):
        return self.do(self.start(lambda: AIOKafkaConsumer(
            *topics, bootstrap_servers=self.address, group_id=group, enable_auto_commit=False, auto_offset_reset="earliest",
            **SECURED)))

    async def take(self, consumer, n, assign=None, seek=None):
        """assign and seek make futures, so they must run on the loop like the rest."""
        if assign:
            consumer.assign([assign])
        if seek:
            consumer.seek(*seek)
        out = []
        while len(out) < n:
            out.append(record(await consumer.getone()))
        return out

    def read(self, topic, partition, start, n):
        consumer, p = self.consumer(), TopicPartition(topic, partition)
        try:
            return self.do(self.take(consumer, n, assign=p, seek=(p, start)))
        finally:
            self.do(consumer.stop())

    def join(self, group, topic):
        return Member(self, self.consumer(topic, group=group), topic)

    def committed(self, group, topic):
        asked = [TopicPartition(topic, p) for p in (0, 1)]
        got = self.ask(lambda: self.admin.list_consumer_group_offsets(group, partitions=asked))
        return {p.partition: o.offset for p, o in got.items()}

    def offset_at(self, topic, partition, ms):
        consumer, p = self.consumer(), TopicPartition(topic, partition)
        try:
            return self.do(consumer.offsets_for_times({p: ms}))[p].offset
        finally:
            self.do(consumer.stop())

    def seek(self, topic, partition, to):
        consumer, p = self.consumer(), TopicPartition(topic, partition)
        try:
            self.do(self.take(consumer, 1, assign=p))
            return self.do(self.take(consumer, 1, seek=(p, to)))[0].offset
        finally:
            self.do(consumer.stop())

    def describe(self, group):
        d = self.ask(lambda: self.admin.describe_consumer_groups([group]))[0].to_object()["groups"][0]
        refuse(d["error_code"], group)
        return d["state"], len(d["members"])

    def reset(self, group, topic, offsets):
        """A consumer with assigned partitions commits for a group that has no members."""
        consumer = self.consumer(group=group)

        async def commit():
            consumer.assign([TopicPartition(topic, p) for p in offsets])
            await consumer.commit({TopicPartition(topic, p): o for p, o in offsets.items()})

        try:
            self.do(commit())
        finally:
            self.do(consumer.stop())

    def delete_topic(self, topic):
        answer = self.do(self.admin.delete_topics([topic])).to_object()
        for error in answer.get("topic_error_codes", []):
            refuse(error["error_code"], topic)

    def topics(self):
        return self.do(self.admin.list_topics())


Walk(AioKafka(sys.argv[1])).run()
