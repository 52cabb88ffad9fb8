package unladen;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpHandler;
import com.sun.net.httpserver.HttpServer;
import io.opentelemetry.api.trace.Span;
import java.io.IOException;
import java.net.HttpURLConnection;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URL;
import java.util.concurrent.Executors;

/**
 * A service for agents to watch, on a free port that it tells on standard error. {@code /pets?number=N} asks its own
 * {@code /prices?number=N}, which fails every fifth time.
 */
public final class Pets {
  private final HttpServer server;

  private Pets(HttpServer server) {
    this.server = server;
  }

  public static void main(String[] arguments) throws IOException {
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    Pets pets = new Pets(server);
    // Elastic's agent does not see handlers that are lambda expressions.
    server.createContext("/pets", new HttpHandler() {
      @Override
      public void handle(HttpExchange exchange) throws IOException {
        reply(exchange, pets.pets(exchange));
      }
    });
    server.createContext("/prices", new HttpHandler() {
      @Override
      public void handle(HttpExchange exchange) throws IOException {
        reply(exchange, pets.prices(exchange));
      }
    });
    // A request to /pets holds a thread while its request to /prices takes another.
    server.setExecutor(Executors.newCachedThreadPool());
    server.start();
    System.err.println("listening on 127.0.0.1:" + server.getAddress().getPort());
  }

  /** Status of the answer. */
  int pets(HttpExchange exchange) throws IOException {
    int number = number(exchange);
    // Nothing happens without an agent that knows OpenTelemetry's interface.
    Span.current().setAttribute("text", "größe 🐾 " + number).setAttribute("number", number);
    URL url = new URL("http://127.0.0.1:" + server.getAddress().getPort() + "/prices?number=" + number);
    return ask((HttpURLConnection) url.openConnection()) == 200 ? 200 : 203;
  }

  /** Status of somebody else's answer. */
  int ask(HttpURLConnection connection) throws IOException {
    return connection.getResponseCode();
  }

  /** Status of the answer. */
  int prices(HttpExchange exchange) {
    return number(exchange) % 5 == 0 ? 500 : 200;
  }

  private static int number(HttpExchange exchange) {
    return Integer.parseInt(exchange.getRequestURI().getQuery().substring("number=".length()));
  }

  private static void reply(HttpExchange exchange, int status) throws IOException {
    exchange.sendResponseHeaders(status, -1);
    exchange.close();
  }
}
