import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Walks kafka-clients through the steps of ../../steps/doc.go. Compiled once, run with several versions. */
public final class Walk {
    private static final String GROUP = "workers";
    private static final String ORDERS = "orders";
    private static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    private static final long STEP_SECONDS_MAX = 75;
    private static final long LIST_SECONDS_MAX = 5;

    private final String address;
    private final Admin admin;
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final Map<String, List<ConsumerRecord<byte[], byte[]>>> back = new HashMap<>();
    private Member live;
    private boolean failed;

    /** A step; it throws when it fails. */
    private interface Step {
        void run() throws Exception;
    }

    public static void main(String[] args) throws Exception {
        Walk walk = new Walk(args[0]);
        walk.run();
        System.exit(walk.failed ? 1 : 0);
    }

    private Walk(String address) {
        this.address = address;
        Properties p = new Properties();
        connect(p);
        admin = Admin.create(p);
    }

    /** The broker, and what one that is secured wants. */
    private void connect(Properties p) {
        p.put("bootstrap.servers", address);
        String ca = System.getenv("WALK_CA");
        if (ca != null) {
            p.put("security.protocol", "SASL_SSL");
            p.put("sasl.mechanism", "SCRAM-SHA-512");
            p.put("ssl.truststore.type", "PEM");
            p.put("ssl.truststore.location", ca);
            p.put("sasl.jaas.config", "org.apache.kafka.common.security.scram.ScramLoginModule required username=\""
                + System.getenv("WALK_USER") + "\" password=\"" + System.getenv("WALK_PASSWORD") + "\";");
        }
    }

    private void run() throws Exception {
        System.out.println("version " + version());
        report("create", this::create);
        for (String codec : CODECS) {
            report(codec, () -> codec(codec));
        }
        report("keys", () -> same((want, got) -> Arrays.equals(want.key(), got.key())));
        report("values", () -> same((want, got) -> Arrays.equals(want.value(), got.value())));
        report("headers", () -> same((want, got) -> sameHeaders(want, got, false)));
        report("null-headers", () -> same((want, got) -> sameHeaders(want, got, true)));
        group();
        report("by-time", this::byTime);
        report("seek", this::seek);
        groupAdmin();
        report("delete-topic", this::deleteTopics);
    }

    private void report(String name, Step step) {
        long started = System.nanoTime();
        try {
            step.run();
            System.out.println("step " + name + " ok");
        } catch (Exception | LinkageError e) {
            failed = true;
            e.printStackTrace();
            System.out.println("step " + name + " FAIL " + e.toString().replace('\n', ' '));
        }
        System.err.println(name + " took " + (System.nanoTime() - started) / 1_000_000 + " ms");
    }

    /** The library's version from its jar: the class that knows it is not at one place in all versions. */
    private static String version() throws Exception {
        Properties p = new Properties();
        try (InputStream in = Admin.class.getResourceAsStream("/kafka/kafka-version.properties")) {
            p.load(in);
        }
        return p.getProperty("version");
    }

    private static void check(boolean condition, String why) {
        if (!condition) {
            throw new IllegalStateException(why);
        }
    }

    private static byte[] bytes(String s) {
        return s.getBytes(StandardCharsets.ISO_8859_1);
    }

    /** The records of steps.Samples. */
    private static List<ProducerRecord<byte[], byte[]>> samples(String topic) {
        List<ProducerRecord<byte[], byte[]>> out = new ArrayList<>();
        out.add(new ProducerRecord<>(topic, 0, bytes("k"), bytes("v")));
        out.add(new ProducerRecord<>(topic, 0, null, bytes("v")));
        out.add(new ProducerRecord<>(topic, 0, bytes(""), bytes("v")));
        out.add(new ProducerRecord<>(topic, 0, bytes("k"), null));
        out.add(new ProducerRecord<>(topic, 0, bytes("k"), bytes("")));
        ProducerRecord<byte[], byte[]> headers = new ProducerRecord<>(topic, 0, bytes("k"), bytes("v"));
        headers.headers().add("a", bytes("1")).add("null", null).add("empty", bytes("")).add("a", bytes("2"));
        out.add(headers);
        ProducerRecord<byte[], byte[]> binary = new ProducerRecord<>(topic, 0, bytes("\0\u00ff\n"), bytes("\u00ff\u00fe\0\n:"));
        binary.headers().add("b", new byte[] {1, 2, (byte) 255});
        out.add(binary);
        out.add(new ProducerRecord<>(topic, 0, bytes("k"), bytes("0123456789abcdef".repeat(4096))));
        return out;
    }

    private void produce(String codec, List<ProducerRecord<byte[], byte[]>> records) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producers.computeIfAbsent(codec, c -> {
            Properties p = new Properties();
            connect(p);
            p.put("compression.type", c);
            p.put("enable.idempotence", "true");
            p.put("acks", "all");
            p.put("linger.ms", "20");
            return new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
        });
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (ProducerRecord<byte[], byte[]> r : records) {
            sent.add(producer.send(r));
        }
        for (Future<RecordMetadata> f : sent) {
            f.get(60, TimeUnit.SECONDS);
        }
    }

    private KafkaConsumer<byte[], byte[]> consumer(String group) {
        Properties p = new Properties();
        connect(p);
        p.put("group.id", group);
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        if (System.getenv("GROUP_PROTOCOL") != null) {
            p.put("group.protocol", System.getenv("GROUP_PROTOCOL"));
        }
        return new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    /** Polls until at least n records are there. */
    private static List<ConsumerRecord<byte[], byte[]>> take(KafkaConsumer<byte[], byte[]> consumer, int n) {
        List<ConsumerRecord<byte[], byte[]>> out = new ArrayList<>();
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(STEP_SECONDS_MAX);
        while (out.size() < n) {
            check(System.nanoTime() < end, out.size() + " of " + n + " records");
            consumer.poll(Duration.ofMillis(200)).forEach(out::add);
        }
        return out;
    }

    private List<ConsumerRecord<byte[], byte[]>> read(String topic, int n) {
        TopicPartition partition = new TopicPartition(topic, 0);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("unused")) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            return take(consumer, n);
        }
    }

    private static List<String> names() {
        List<String> out = new ArrayList<>(List.of(ORDERS, "times"));
        CODECS.forEach(c -> out.add("codec-" + c));
        return out;
    }

    private void create() throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        short replicas = Short.parseShort(System.getenv().getOrDefault("REPLICAS", "1"));
        names().forEach(n -> topics.add(new NewTopic(n, n.equals(ORDERS) ? 2 : 1, replicas)));
        admin.createTopics(topics).all().get(30, TimeUnit.SECONDS);
        listed(true);
    }

    /** Of several brokers one may hear of a change some milliseconds after another one has answered it. */
    private void listed(boolean present) throws Exception {
        for (long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(LIST_SECONDS_MAX); ; Thread.sleep(50)) {
            Set<String> have = admin.listTopics().names().get(30, TimeUnit.SECONDS);
            if (present ? have.containsAll(names()) : names().stream().noneMatch(have::contains)) {
                return;
            }
            check(System.nanoTime() < end, "topics listed: " + have);
        }
    }

    private void codec(String codec) throws Exception {
        String topic = "codec-" + codec;
        produce(codec, samples(topic));
        List<ConsumerRecord<byte[], byte[]>> got = read(topic, samples(topic).size());
        for (int i = 0; i < got.size(); i++) {
            check(got.get(i).offset() == i, "record " + i + " has offset " + got.get(i).offset());
        }
        back.put(codec, got);
    }

    /** Compares a record as sent with it as read. */
    private interface Same {
        boolean test(ProducerRecord<byte[], byte[]> want, ConsumerRecord<byte[], byte[]> got);
    }

    private void same(Same same) {
        check(!back.isEmpty(), "nothing was read back");
        back.forEach((codec, got) -> {
            List<ProducerRecord<byte[], byte[]>> want = samples("");
            for (int i = 0; i < want.size(); i++) {
                check(same.test(want.get(i), got.get(i)), codec + ", record " + i + " came back different");
            }
        });
    }

    private static boolean sameHeaders(ProducerRecord<byte[], byte[]> want, ConsumerRecord<byte[], byte[]> got, boolean nulls) {
        Header[] w = want.headers().toArray();
        Header[] g = got.headers().toArray();
        if (w.length != g.length) {
            return false;
        }
        for (int i = 0; i < w.length; i++) {
            byte[] sent = w[i].value() == null && !nulls ? new byte[0] : w[i].value();
            byte[] read = g[i].value() == null && !nulls ? new byte[0] : g[i].value();
            if (!w[i].key().equals(g[i].key()) || !Arrays.equals(sent, read)) {
                return false;
            }
        }
        return true;
    }

    private void produceOrders(int first, int end) throws Exception {
        List<ProducerRecord<byte[], byte[]>> out = new ArrayList<>();
        for (int o = first; o < end; o++) {
            for (int p = 0; p < 2; p++) {
                out.add(new ProducerRecord<>(ORDERS, p, bytes("k" + p), bytes(Integer.toString(o))));
            }
        }
        produce("none", out);
    }

    /** A member of the group and what it has seen per partition: the first offset, and the one after the last. */
    private final class Member implements AutoCloseable {
        final KafkaConsumer<byte[], byte[]> consumer = consumer(GROUP);
        final long[] first = {-1, -1};
        final long[] end = {0, 0};

        /** Joins, reads up to end, and must have begun at begin. */
        Member(long begin, long upTo) {
            consumer.subscribe(List.of(ORDERS));
            try {
                follow(upTo, Long.MAX_VALUE);
                check(first[0] == begin && first[1] == begin, "began at " + Arrays.toString(first) + ", want " + begin);
            } catch (RuntimeException e) {
                close();
                throw e;
            }
        }

        /** Reads until both partitions were seen up to upTo: no hole, and no repeat below repeatFrom. */
        void follow(long upTo, long repeatFrom) {
            while (end[0] < upTo || end[1] < upTo) {
                for (ConsumerRecord<byte[], byte[]> r : take(consumer, 1)) {
                    int p = r.partition();
                    System.err.println("read " + p + "/" + r.offset());
                    check(Long.toString(r.offset()).equals(new String(r.value(), StandardCharsets.ISO_8859_1)), "offset " + r.offset() + " holds another record");
                    if (first[p] < 0) {
                        first[p] = r.offset();
                    } else {
                        check(r.offset() <= end[p], "partition " + p + ": " + r.offset() + " follows " + (end[p] - 1) + ": records were lost");
                        check(r.offset() == end[p] || r.offset() >= repeatFrom, "partition " + p + ": " + r.offset() + " was read again");
                    }
                    end[p] = Math.max(end[p], r.offset() + 1);
                }
            }
        }

        void commit(long offset) {
            consumer.commitSync(offsets(offset));
        }

        @Override
        public void close() {
            consumer.close();
        }
    }

    private static Map<TopicPartition, OffsetAndMetadata> offsets(long offset) {
        return Map.of(new TopicPartition(ORDERS, 0), new OffsetAndMetadata(offset), new TopicPartition(ORDERS, 1), new OffsetAndMetadata(offset));
    }

    private void checkCommitted(long want) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> got = admin.listConsumerGroupOffsets(GROUP).partitionsToOffsetAndMetadata().get(30, TimeUnit.SECONDS);
        check(got.equals(offsets(want)) || (got.size() == 2 && got.values().stream().allMatch(o -> o.offset() == want)), "committed " + got + ", want " + want);
    }

    private void group() {
        Member[] member = new Member[1];
        report("group", () -> {
            produceOrders(0, 10);
            member[0] = new Member(0, 10);
        });
        report("commit", () -> {
            member[0].commit(5);
            checkCommitted(5);
        });
        report("restart-consumer", () -> {
            member[0].close();
            member[0] = new Member(5, 10);
            member[0].commit(8);
        });
        report("kill-9", () -> {
            restart();
            produceOrders(10, 15);
            member[0].follow(15, 8);
            member[0].close();
            check(read("codec-zstd", samples("").size()).size() == samples("").size(), "records are missing after the restart");
            live = new Member(8, 15);
        });
    }

    private static void restart() throws Exception {
        System.out.println("RESTART");
        String line = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8)).readLine();
        check("DONE".equals(line), "the driver answered " + line);
    }

    private void groupAdmin() {
        report("describe-group", () -> {
            ConsumerGroupDescription d = admin.describeConsumerGroups(List.of(GROUP)).describedGroups().get(GROUP).get(30, TimeUnit.SECONDS);
            // state() is deprecated in 4.x and its successor is absent from 2.8; the text is in all.
            check(d.toString().toLowerCase().contains("state=stable") && d.members().size() == 1, d.toString());
        });
        report("reset-group", () -> {
            live.close();
            admin.alterConsumerGroupOffsets(GROUP, offsets(2)).all().get(30, TimeUnit.SECONDS);
            checkCommitted(2);
            new Member(2, 15).close();
        });
        report("delete-group", () -> {
            admin.deleteConsumerGroups(List.of(GROUP)).all().get(30, TimeUnit.SECONDS);
            check(admin.listConsumerGroups().all().get(30, TimeUnit.SECONDS).stream().noneMatch(g -> g.groupId().equals(GROUP)), "the group is still listed");
        });
    }

    private void byTime() throws Exception {
        long base = System.currentTimeMillis() - 3_600_000;
        List<ProducerRecord<byte[], byte[]>> out = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            out.add(new ProducerRecord<>("times", 0, base + i * 1000L, null, bytes("t")));
        }
        produce("none", out);
        TopicPartition p = new TopicPartition("times", 0);
        for (long[] q : new long[][] {{-1000, 0}, {1, 1}, {2000, 2}}) {
            long got = admin.listOffsets(Map.of(p, OffsetSpec.forTimestamp(base + q[0]))).partitionResult(p).get(30, TimeUnit.SECONDS).offset();
            check(got == q[1], "offset at " + q[0] + " ms is " + got + ", want " + q[1]);
        }
    }

    private void seek() {
        TopicPartition p = new TopicPartition("codec-none", 0);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer("unused")) {
            consumer.assign(List.of(p));
            consumer.seekToBeginning(List.of(p));
            take(consumer, 1);
            for (long to : new long[] {6, 3}) {
                consumer.seek(p, to);
                long got = take(consumer, 1).get(0).offset();
                check(got == to, "after a seek to " + to + " the next record is " + got);
            }
        }
    }

    private void deleteTopics() throws Exception {
        admin.deleteTopics(names()).all().get(30, TimeUnit.SECONDS);
        listed(false);
    }
}
