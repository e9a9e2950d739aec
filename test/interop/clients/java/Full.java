import java.util.Properties;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Publishes one record to a topic that may be refused for want of room: Full BROKERS TOPIC RETRIES. With RETRIES "all" it waits as long as the
 * client does by default. Its first line says "warm" when the client knows the topic; the last one the offset, or the error and after how many
 * milliseconds it came.
 */
public final class Full {
    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("linger.ms", "0");
        if (!args[2].equals("all")) {
            p.put("retries", args[2]);
            p.put("enable.idempotence", "false"); // which demands retries
        }
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.partitionsFor(args[1]);
            System.out.println("warm");
            long began = System.nanoTime();
            try {
                RecordMetadata at = producer.send(new ProducerRecord<>(args[1], new byte[100])).get();
                System.out.println("offset " + at.offset());
            } catch (ExecutionException e) {
                System.out.println((System.nanoTime() - began) / 1_000_000 + " " + e.getCause().getClass().getSimpleName() + " " + e.getCause().getMessage());
            }
        }
    }
}
