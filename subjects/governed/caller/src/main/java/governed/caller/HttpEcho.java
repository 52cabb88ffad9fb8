package governed.caller;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The echo's side for HTTP. */
final class HttpEcho implements Echo.Listener {

    static final String PATH = "/tag";

    private static final int THREADS = 32;

    static {
        // It writes head and body apart: without this the body waits 40 ms for the acknowledgement of the head (RFC 1122, 4.2.3.2 and 4.2.3.4).
        System.setProperty("sun.net.httpserver.nodelay", "true");
    }

    private final ExecutorService threads = Executors.newFixedThreadPool(THREADS, work -> {
        Thread thread = new Thread(work, "echo");
        thread.setDaemon(true);
        return thread;
    });
    private final HttpServer server;

    HttpEcho(int port) throws IOException {
        // More than come at once: who waits in vain for a place there tries again only after a second.
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 1024);
        server.setExecutor(threads);
        server.createContext(PATH, HttpEcho::answer);
        server.start();
    }

    @Override
    public int port() {
        return server.getAddress().getPort();
    }

    private static void answer(HttpExchange exchange) throws IOException {
        String tag = Optional.ofNullable(exchange.getRequestHeaders().getFirst(Client.TAG)).orElse(Client.NONE);
        byte[] bytes = tag.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, bytes.length);
        try (OutputStream body = exchange.getResponseBody()) {
            body.write(bytes);
        }
    }

    @Override
    public void close() {
        server.stop(0);
        threads.shutdownNow();
    }
}
