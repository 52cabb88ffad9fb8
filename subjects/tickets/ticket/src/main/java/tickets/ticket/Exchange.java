package tickets.ticket;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.Promise;

/** A request, what stands in its path, and the one answer that it gets. */
record Exchange(Request request, Response response, Callback callback, Map<String, String> path) {
  CompletableFuture<String> body() {
    return Promise.Completable.with(promise -> Content.Source.asString(request, StandardCharsets.UTF_8, promise));
  }

  void answer(Reply reply) {
    response.setStatus(reply.status());
    response.getHeaders().put(HttpHeader.CONTENT_TYPE, reply.type());
    Content.Sink.write(response, true, reply.body(), callback);
  }
}
