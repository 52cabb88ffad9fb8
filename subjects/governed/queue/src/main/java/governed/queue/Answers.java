package governed.queue;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;

/** What the consumer says of itself, on 127.0.0.1: `/ready` and `/taken`. */
final class Answers implements AutoCloseable {

    private final HttpServer server;

    Answers(int port, Consumption consumption) throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        server.createContext("/ready", exchange -> answer(exchange, consumption.isReady() ? 200 : 503, "" + consumption.isReady()));
        server.createContext("/taken", exchange -> answer(exchange, 200, Long.toString(consumption.taken())));
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
