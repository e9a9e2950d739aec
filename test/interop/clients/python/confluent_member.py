"""One member of a group, with the lines of ../../churn_test.go: BROKERS GROUP TOPIC PROTOCOL. It leaves when its standard input ends."""

import sys
import threading

from confluent_kafka import Consumer, KafkaException, TopicPartition

brokers, group, topic, protocol = sys.argv[1:]
settings = {"bootstrap.servers": brokers, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest", "group.protocol": protocol,
            "enable.auto.offset.store": False, "socket.timeout.ms": 4000}
if protocol == "classic":
    settings |= {"session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "partition.assignment.strategy": "range"}


def say(*words):
    print(*words, flush=True)


def told(what):
    return lambda _, partitions: [say(what, p.partition) for p in partitions]


leave = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), leave.set()), daemon=True).start()
consumer = Consumer(settings)
consumer.subscribe([topic], on_assign=told("assigned"), on_revoke=told("revoked"), on_lost=told("lost"))
while not leave.is_set():
    next_offsets = {}
    for m in consumer.consume(500, 0.2):
        if m.error():
            print(m.error(), file=sys.stderr)
            continue
        say("read", m.partition(), m.offset(), m.value().decode())
        next_offsets[m.partition()] = m.offset() + 1
    if not next_offsets:
        continue
    for p, o in next_offsets.items():
        say("committing", p, o)
    try:
        for p in consumer.commit(offsets=[TopicPartition(topic, p, o) for p, o in next_offsets.items()], asynchronous=False):
            if p.error is None:
                say("committed", p.partition, p.offset)
            else:
                say("refused", p.partition, p.error.name())
    except KafkaException as e:  # the group has gone on, or the coordinator is away: what was read is read again by whoever has it next
        say("refused", e.args[0].name())
consumer.close()
