package governed.queue;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;

/** What the consumer says of itself, on 127.0.0.1: `/ready`, `/taken` and `/tagged`. */
final class Answers implements AutoCloseable {

    /** Who has been given nothing to read for so long is kept from it, as by an agent; nobody need wait for that any more. */
    private static final long PATIENCE_NANOSECONDS = 15_000_000_000L;

    static {
        // It writes head and body apart; without this the body waits 40 ms for the acknowledgement of the head.
        System.setProperty("sun.net.httpserver.nodelay", "true");
    }

    private final HttpServer server;
    private final long started = System.nanoTime();

    Answers(int port, Consumption consumption) throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        server.createContext("/ready", exchange -> {
            boolean ready = consumption.isReady() || System.nanoTime() - started > PATIENCE_NANOSECONDS;
            answer(exchange, ready ? 200 : 503, Boolean.toString(ready));
        });
        server.createContext("/taken", exchange -> answer(exchange, 200, Long.toString(consumption.taken())));
        server.createContext("/tagged", exchange -> answer(exchange, 200, Long.toString(consumption.tagged())));
        server.start();
    }

    /** `http://host:port`. */
    String address() {
        return "http://" + server.getAddress().getAddress().getHostAddress() + ":" + server.getAddress().getPort();
    }

    private static void answer(HttpExchange exchange, int status, String text) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(status, bytes.length);
        try (OutputStream body = exchange.getResponseBody()) {
            body.write(bytes);
        }
    }

    @Override
    public void close() {
        server.stop(0);
    }
}
