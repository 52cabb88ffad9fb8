package tickets.ticket;

import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.SizeLimitHandler;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** HTTP/1.1 and HTTP/2 in clear text, on one port of this instance and one that all instances share. */
final class Front implements AutoCloseable {
  private static final String HOST = "127.0.0.1";
  private static final int THREADS = 24;
  private static final int LARGEST_BODY = 256 * 1024;
  /** As many requests wait on a connection as customers like. */
  private static final int STREAMS = 100_000;
  private static final int BACKLOG = 4_096;

  private final Server server;
  private final ServerConnector own;

  /** {@code shared} is 0 if there is none. The kernel gives each of its connections to one of the instances. */
  Front(Handler handler, int port, int shared) throws Exception {
    QueuedThreadPool threads = new QueuedThreadPool(THREADS);
    threads.setName("front");
    server = new Server(threads);
    own = connector(port, false);
    server.addConnector(own);
    if (shared != 0) {
      server.addConnector(connector(shared, true));
    }
    SizeLimitHandler limited = new SizeLimitHandler(LARGEST_BODY, -1);
    limited.setHandler(handler);
    server.setHandler(limited);
    server.start();
  }

  private ServerConnector connector(int port, boolean shared) {
    HttpConfiguration configuration = new HttpConfiguration();
    configuration.setSendServerVersion(false);
    HTTP2CServerConnectionFactory http2 = new HTTP2CServerConnectionFactory(configuration);
    http2.setMaxConcurrentStreams(STREAMS);
    ServerConnector connector = new ServerConnector(server, 1, 1, new HttpConnectionFactory(configuration), http2);
    connector.setHost(HOST);
    connector.setPort(port);
    connector.setReusePort(shared);
    connector.setAcceptQueueSize(BACKLOG);
    return connector;
  }

  /** The port of this instance. */
  int port() {
    return own.getLocalPort();
  }

  @Override
  public void close() throws Exception {
    server.stop();
  }
}
