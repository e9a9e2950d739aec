import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** One member of a group, with the lines of ../../churn_test.go: Member BROKERS GROUP TOPIC PROTOCOL. It leaves when its standard input ends. */
public final class Member {
    private static final Duration POLL_MAX = Duration.ofMillis(200);

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("group.id", args[1]);
        p.put("enable.auto.commit", "false");
        p.put("auto.offset.reset", "earliest");
        p.put("default.api.timeout.ms", "5000");
        p.put("request.timeout.ms", "4000");
        p.put("group.protocol", args[3]);
        if (args[3].equals("classic")) {
            p.put("session.timeout.ms", "6000");
            p.put("heartbeat.interval.ms", "500");
            p.put("partition.assignment.strategy", "org.apache.kafka.clients.consumer.RangeAssignor");
        }
        AtomicBoolean leave = new AtomicBoolean();
        Thread input = new Thread(() -> {
            try {
                System.in.transferTo(OutputStream.nullOutputStream());
            } catch (IOException e) {
                System.err.println(e);
            }
            leave.set(true);
        });
        input.setDaemon(true);
        input.start();
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(p, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        try (consumer) {
            consumer.subscribe(List.of(args[2]), new ConsumerRebalanceListener() {
                @Override public void onPartitionsAssigned(Collection<TopicPartition> given) { say("assigned", given); }
                @Override public void onPartitionsRevoked(Collection<TopicPartition> taken) { say("revoked", taken); }
                @Override public void onPartitionsLost(Collection<TopicPartition> lost) { say("lost", lost); }
            });
            while (!leave.get()) {
                step(consumer);
            }
        }
    }

    private static void step(KafkaConsumer<byte[], byte[]> consumer) {
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        StringBuilder read = new StringBuilder();
        for (ConsumerRecord<byte[], byte[]> r : consumer.poll(POLL_MAX)) {
            read.append("read ").append(r.partition()).append(' ').append(r.offset()).append(' ')
                .append(new String(r.value(), StandardCharsets.UTF_8)).append('\n');
            next.put(new TopicPartition(r.topic(), r.partition()), new OffsetAndMetadata(r.offset() + 1));
        }
        if (next.isEmpty()) {
            return;
        }
        Map<Integer, Long> offsets = new TreeMap<>();
        next.forEach((tp, o) -> offsets.put(tp.partition(), o.offset()));
        offsets.forEach((partition, offset) -> read.append("committing ").append(partition).append(' ').append(offset).append('\n'));
        System.out.print(read);
        System.out.flush();
        try {
            consumer.commitSync(next);
            offsets.forEach((partition, offset) -> System.out.println("committed " + partition + " " + offset));
        } catch (KafkaException e) { // the group has gone on, or the coordinator is away: what was read is read again by whoever has it next
            System.out.println("refused " + e.getClass().getSimpleName());
        }
    }

    private static void say(String what, Collection<TopicPartition> partitions) {
        for (TopicPartition tp : partitions) {
            System.out.println(what + " " + tp.partition());
        }
    }
}
