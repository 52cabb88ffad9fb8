package governed.queue;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Sends messages and waits until they have been taken. */
final class Production {

    private static final long PAUSE_MILLISECONDS = 20;
    /** A consumer that takes nothing for so long takes nothing any more. */
    private static final long PATIENCE_MILLISECONDS = 3000;

    private final Queue queue;
    private final String broker;
    private final String topic;
    private final URI taken;
    private final HttpClient client = HttpClient.newHttpClient();

    Production(Queue queue, String broker, String topic, String consumer) {
        this.queue = queue;
        this.broker = broker;
        this.topic = topic;
        taken = URI.create(consumer + "/taken");
    }

    /** {@code {"sent": 100, "taken": 100}}, of this run alone. */
    String run(long count) throws IOException, InterruptedException {
        long before = taken();
        queue.send(broker, topic, count);
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

    private long taken() throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(taken).build();
        return Long.parseLong(client.send(request, HttpResponse.BodyHandlers.ofString()).body());
    }
}
