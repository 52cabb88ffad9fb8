package tickets.ticket;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.eclipse.jetty.client.CompletableResponseListener;
import org.eclipse.jetty.client.ContentResponse;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.client.HttpClientTransport;
import org.eclipse.jetty.client.transport.HttpClientTransportOverHTTP;
import org.eclipse.jetty.http2.client.HTTP2Client;
import org.eclipse.jetty.http2.client.transport.HttpClientTransportOverHTTP2;
import org.eclipse.jetty.io.ClientConnector;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** Asks other instances: the same client for both protocols, so that nothing but the protocol differs. */
final class Peers implements AutoCloseable {
  /** Protocols between the instances. */
  enum Protocol { HTTP1, HTTP2 }

  private static final int THREADS = 12;
  /** Over HTTP/1.1 a request that waits has a connection of its own. */
  private static final int HTTP1_CONNECTIONS = 8_192;
  private static final int HTTP2_CONNECTIONS = 4;
  private static final int QUEUE = 1_000_000;

  private final HttpClient client;
  private final long timeoutMs;

  Peers(Protocol protocol, long timeoutMs) throws Exception {
    ClientConnector connector = new ClientConnector();
    connector.setSelectors(1);
    HttpClientTransport transport;
    if (protocol == Protocol.HTTP2) {
      HTTP2Client http2 = new HTTP2Client(connector);
      // Clear text, and both sides know that it is HTTP/2.
      http2.setUseALPN(false);
      transport = new HttpClientTransportOverHTTP2(http2);
    } else {
      transport = new HttpClientTransportOverHTTP(connector);
    }
    client = new HttpClient(transport);
    QueuedThreadPool threads = new QueuedThreadPool(THREADS);
    threads.setName("peers");
    client.setExecutor(threads);
    client.setMaxConnectionsPerDestination(protocol == Protocol.HTTP2 ? HTTP2_CONNECTIONS : HTTP1_CONNECTIONS);
    client.setMaxRequestsQueuedPerDestination(QUEUE);
    client.setFollowRedirects(false);
    this.timeoutMs = timeoutMs;
    client.start();
  }

  /** Asks; fails if there is no answer within the timeout. */
  CompletableFuture<Reply> get(String url) {
    CompletableFuture<ContentResponse> answer =
        new CompletableResponseListener(client.newRequest(url).timeout(timeoutMs, TimeUnit.MILLISECONDS)).send();
    return answer.thenApply(got -> new Reply(got.getStatus(), got.getMediaType(), got.getContentAsString()));
  }

  @Override
  public void close() throws Exception {
    client.stop();
  }
}
