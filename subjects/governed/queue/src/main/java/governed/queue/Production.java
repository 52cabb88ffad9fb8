package governed.queue;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends messages and waits until they have been taken. */
public final class Production {

    private static final int MESSAGE_BYTES = 100;
    private static final long PAUSE_MILLISECONDS = 20;
    /** A consumer that takes nothing for so long takes nothing any more. */
    private static final long PATIENCE_MILLISECONDS = 3000;

    private final String broker;
    private final String topic;
    private final URI taken;
    private final HttpClient client = HttpClient.newHttpClient();

    Production(String broker, String topic, String consumer) {
        this.broker = broker;
        this.topic = topic;
        taken = URI.create(consumer + "/taken");
    }

    /** {@code {"sent": 100, "taken": 100}}, of this run alone. */
    String run(long count) throws IOException, InterruptedException {
        long before = taken();
        send(broker, topic, count);
        long moved = awaitTaken(count, () -> taken() - before, PATIENCE_MILLISECONDS);
        return "{\"sent\": " + count + ", \"taken\": " + moved + "}";
    }

    /** What is asked again and again. */
    interface Counter {
        long count() throws IOException, InterruptedException;
    }

    /** Waits until so many were taken, or none for the time of {@code patience}. Returns how many it was. */
    static long awaitTaken(long count, Counter taken, long patience) throws IOException, InterruptedException {
        long sofar = taken.count();
        long moved = System.nanoTime();
        while (sofar < count && System.nanoTime() - moved < patience * 1_000_000) {
            Thread.sleep(PAUSE_MILLISECONDS);
            long now = taken.count();
            if (now > sofar) {
                sofar = now;
                moved = System.nanoTime();
            }
        }
        return sofar;
    }

    /** Sends so many messages; all of them are with the broker when it returns. */
    public static void send(String broker, String topic, long count) throws IOException {
        Properties settings = new Properties();
        settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, broker);
        settings.put(ProducerConfig.ACKS_CONFIG, "1");
        settings.put(ProducerConfig.LINGER_MS_CONFIG, 5);
        AtomicReference<Exception> failed = new AtomicReference<>();
        byte[] message = new byte[MESSAGE_BYTES];
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            for (long sent = 0; sent < count; sent++) {
                producer.send(new ProducerRecord<>(topic, message), (where, problem) -> {
                    if (problem != null) {
                        failed.compareAndSet(null, problem);
                    }
                });
            }
        }
        if (failed.get() != null) {
            throw new IOException("the broker at " + broker + " did not take every message", failed.get());
        }
    }

    private long taken() throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(taken).build();
        return Long.parseLong(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
    }
}
