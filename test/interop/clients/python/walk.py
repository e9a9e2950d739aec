"""The walk of ../../steps/doc.go for clients written in Python; each adapter gives it a Client."""

import os
import sys
import time
import traceback

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
GROUP, ORDERS = "workers", "orders"
STEP_TIME_MAX = 75
LIST_TIME_MAX = 5
REPLICAS = int(os.environ.get("REPLICAS", "1"))
CA, USER, PASSWORD = (os.environ.get("WALK_" + name) for name in ("CA", "USER", "PASSWORD"))  # None: an open broker


class Record:
    """One record; None is null. offset and at (milliseconds) are None where not said."""

    def __init__(self, key=None, value=None, headers=(), partition=0, offset=None, at=None):
        self.key, self.value, self.headers = key, value, list(headers)
        self.partition, self.offset, self.at = partition, offset, at


def samples():
    """The records of steps.Samples."""
    return [
        Record(b"k", b"v"),
        Record(None, b"v"),
        Record(b"", b"v"),
        Record(b"k", None),
        Record(b"k", b""),
        Record(b"k", b"v", [("a", b"1"), ("null", None), ("empty", b""), ("a", b"2")]),
        Record(b"\x00\xff\n", b"\xff\xfe\x00\n:", [("b", b"\x01\x02\xff")]),
        Record(b"k", b"0123456789abcdef" * 4096),
    ]


class Client:
    """What an adapter overrides. A step that the library has no call for goes into lacks: step -> why."""

    version = "unknown"
    lacks = {}

    def restarted(self):
        """Called once the broker is back; for a library that needs help then."""

    # create(topic, partitions), produce(topic, codec, records), read(topic, partition, start, n) -> records,
    # join(group, topic) -> member, committed(group, topic) -> {partition: offset}, offset_at(topic, partition, ms) -> offset,
    # seek(topic, partition, to) -> offset of the next record, describe(group) -> (state, members),
    # reset(group, topic, offsets), delete_group(group), delete_topic(topic), topics() -> names.
    # A member has next() -> records (maybe none), commit({partition: offset}), close().


class Deadline:
    """Ends a loop that waits for a client."""

    def __init__(self, seconds=STEP_TIME_MAX):
        self.end = time.monotonic() + seconds

    def check(self, what):
        if time.monotonic() > self.end:
            raise TimeoutError(what)


def log(*words):
    print(*words, file=sys.stderr, flush=True)


def check(condition, why):
    if not condition:
        raise AssertionError(why)


class Walk:
    def __init__(self, client):
        self.client, self.failed, self.back, self.live = client, False, {}, None

    def report(self, name, step):
        why = self.client.lacks.get(name)
        if why:
            print(f"step {name} not-offered {why}", flush=True)
            return
        started = time.monotonic()
        try:
            step()
            print(f"step {name} ok", flush=True)
        except Exception as e:
            self.failed = True
            traceback.print_exc()
            print(f"step {name} FAIL {type(e).__name__}: {e}".replace("\n", " "), flush=True)
        log(f"{name} took {time.monotonic() - started:.2f}s")

    def run(self):
        print(f"version {self.client.version}", flush=True)
        self.report("create", self.create)
        for codec in CODECS:
            self.report(codec, lambda: self.codec(codec))
        self.report("keys", lambda: self.same(lambda r: r.key))
        self.report("values", lambda: self.same(lambda r: r.value))
        self.report("headers", lambda: self.same(lambda r: [(k, v or b"") for k, v in r.headers]))
        self.report("null-headers", lambda: self.same(lambda r: r.headers))
        self.group()
        self.report("by-time", self.by_time)
        self.report("seek", self.seek)
        self.group_admin()
        self.report("delete-topic", self.delete_topics)
        sys.exit(1 if self.failed else 0)

    def names(self):
        return [ORDERS, "times"] + ["codec-" + c for c in CODECS]

    def create(self):
        for name in self.names():
            self.client.create(name, 2 if name == ORDERS else 1)
        self.listed(set(self.names()))

    def listed(self, want):
        """Of several brokers one may hear of a change some milliseconds after another one has answered it."""
        end = time.monotonic() + LIST_TIME_MAX
        while (have := set(self.client.topics()) & set(self.names())) != want:
            check(time.monotonic() < end, f"topics listed: {sorted(have)}, want {sorted(want)}")
            time.sleep(0.05)

    def codec(self, codec):
        topic = "codec-" + codec
        self.client.produce(topic, codec, samples())
        got = self.client.read(topic, 0, 0, len(samples()))
        check([r.offset for r in got] == list(range(len(samples()))), f"offsets {[r.offset for r in got]}")
        self.back[codec] = got

    def same(self, field):
        check(len(self.back) > 0, "nothing was read back")
        for codec, got in self.back.items():
            for i, (want, have) in enumerate(zip(samples(), got)):
                check(field(want) == field(have), f"{codec}, record {i}: {str(field(have))[:60]}, sent {str(field(want))[:60]}")

    def produce_orders(self, first, end):
        records = [Record(b"k%d" % p, str(o).encode(), partition=p) for o in range(first, end) for p in (0, 1)]
        self.client.produce(ORDERS, "none", records)

    def follow(self, member, seen, end, repeat_from):
        """Reads until both partitions were seen up to end: no hole, and no repeat below repeat_from."""
        deadline = Deadline()
        while seen["end"].get(0, 0) < end or seen["end"].get(1, 0) < end:
            deadline.check(f"seen up to {seen['end']} of {end}")
            for r in member.next():
                log("read", r.partition, r.offset)
                check(r.value == str(r.offset).encode(), f"offset {r.offset} holds {r.value}")
                at = seen["end"].get(r.partition)
                if at is None:
                    seen["first"][r.partition] = r.offset
                else:
                    check(r.offset <= at, f"partition {r.partition}: {r.offset} follows {at - 1}: records were lost")
                    if r.offset < at:
                        check(r.offset >= repeat_from, f"partition {r.partition}: {r.offset} was read again")
                        continue
                seen["end"][r.partition] = r.offset + 1

    def join_at(self, begin, end):
        member = self.client.join(GROUP, ORDERS)
        seen = {"first": {}, "end": {}}
        try:
            self.follow(member, seen, end, sys.maxsize)
            check(seen["first"] == {0: begin, 1: begin}, f"began at {seen['first']}, want {begin}")
        except Exception:
            member.close()
            raise
        return member, seen

    def check_committed(self, want):
        got = self.client.committed(GROUP, ORDERS)
        check(got == {0: want, 1: want}, f"committed {got}, want {want}")

    def group(self):
        self.member, self.seen = None, None

        def first():
            self.produce_orders(0, 10)
            self.member, self.seen = self.join_at(0, 10)

        def commit():
            self.member.commit({0: 5, 1: 5})
            self.check_committed(5)

        def second():
            self.member.close()
            self.member, self.seen = self.join_at(5, 10)
            self.member.commit({0: 8, 1: 8})

        self.report("group", first)
        self.report("commit", commit)
        self.report("restart-consumer", second)
        self.report("kill-9", self.kill)

    def kill(self):
        print("RESTART", flush=True)
        check(sys.stdin.readline().strip() == "DONE", "the driver did not answer DONE")
        self.client.restarted()
        self.produce_orders(10, 15)
        self.follow(self.member, self.seen, 15, 8)
        self.member.close()
        check(len(self.client.read("codec-zstd", 0, 0, len(samples()))) == len(samples()), "records are missing after the restart")
        self.live, _ = self.join_at(8, 15)

    def group_admin(self):
        def describe():
            state, members = self.client.describe(GROUP)
            check((state, members) == ("Stable", 1), f"state {state} with {members} members, want Stable with 1")

        def reset():
            self.live.close()
            self.client.reset(GROUP, ORDERS, {0: 2, 1: 2})
            self.join_at(2, 15)[0].close()

        def delete():
            self.client.delete_group(GROUP)
            got = self.client.committed(GROUP, ORDERS)
            check(not any(o > 0 for o in got.values()), f"committed {got} after the group was deleted")

        self.report("describe-group", describe)
        self.report("reset-group", reset)
        self.report("delete-group", delete)

    def by_time(self):
        base = int(time.time() * 1000) - 3_600_000
        self.client.produce("times", "none", [Record(None, b"t", at=base + i * 1000) for i in range(3)])
        for after, want in ((-1000, 0), (1, 1), (2000, 2)):
            got = self.client.offset_at("times", 0, base + after)
            check(got == want, f"offset at {after} ms is {got}, want {want}")

    def seek(self):
        for to in (6, 3):
            got = self.client.seek("codec-none", 0, to)
            check(got == to, f"after a seek to {to} the next record is {got}")

    def delete_topics(self):
        for name in self.names():
            self.client.delete_topic(name)
        self.listed(set())
