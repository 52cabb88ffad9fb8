package governed.queue;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;

/** Has messages sent and waits until they have been taken. */
final class Production {

    private static final long PAUSE_MILLISECONDS = 20;
    /** A consumer that takes nothing for so long takes nothing any more. */
    private static final long PATIENCE_MILLISECONDS = 3000;

    private static final HttpClient CLIENT = HttpClient.newHttpClient();

    private final String consumer;
    private final boolean tellsTagged;

    /** @param tellsTagged whether it says as well how many of them carried a tag */
    Production(String consumer, boolean tellsTagged) {
        this.consumer = consumer;
        this.tellsTagged = tellsTagged;
    }

    /** Who sends them. */
    interface Sender {
        /** All of them are with the broker when it returns. */
        void send(long count) throws IOException, InterruptedException;
    }

    /** A relay that is asked to, in a request that carries a tag. */
    static Sender by(String relay) {
        return count -> {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(relay + "/send?count=" + count));
            answer(request.header(Consumption.TAG, "blue").POST(HttpRequest.BodyPublishers.noBody()));
        };
    }

    /** {@code {"sent": 100, "taken": 100}}, of this run alone. */
    String run(long count, Sender sender) throws IOException, InterruptedException {
        long before = asked("/taken");
        long taggedBefore = asked("/tagged");
        sender.send(count);
        long taken = awaitTaken(count, () -> asked("/taken") - before, PATIENCE_MILLISECONDS);
        String tagged = tellsTagged ? ", \"tagged\": " + (asked("/tagged") - taggedBefore) : "";
        return "{\"sent\": " + count + ", \"taken\": " + taken + tagged + "}";
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

    private long asked(String path) throws IOException, InterruptedException {
        return Long.parseLong(answer(HttpRequest.newBuilder(URI.create(consumer + path))));
    }

    private static String answer(HttpRequest.Builder request) throws IOException, InterruptedException {
        HttpResponse<String> answer = CLIENT.send(request.build(), HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) {
            throw new IOException(answer.uri() + " answered " + answer.statusCode() + ": " + answer.body());
        }
        return answer.body();
    }
}
