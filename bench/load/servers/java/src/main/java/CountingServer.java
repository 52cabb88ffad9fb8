import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.atomic.LongAdder;
import org.eclipse.jetty.alpn.server.ALPNServerConnectionFactory;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2ServerConnectionFactory;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.SecureRequestCustomizer;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.ssl.SslContextFactory;

/** A server by Jetty that counts its requests; see ../../../../README.md. */
public final class CountingServer extends Handler.Abstract.NonBlocking {
    private final LongAdder count = new LongAdder();

    @Override
    public boolean handle(Request request, Response response, Callback callback) {
        String text = "hello";
        if (Request.getPathInContext(request).equals("/count")) {
            text = Long.toString(count.sum());
        } else {
            count.increment();
        }
        response.getHeaders().put(HttpHeader.CONTENT_LENGTH, text.length());
        response.write(true, StandardCharsets.US_ASCII.encode(text), callback);
        return true;
    }

    private static void add(Server server, ServerConnector connector, String port) {
        connector.setHost("127.0.0.1");
        connector.setPort(Integer.parseInt(port));
        server.addConnector(connector);
    }

    public static void main(String[] arguments) throws Exception {
        Server server = new Server();
        HttpConfiguration clear = new HttpConfiguration();
        for (String port : new String[] {arguments[0], arguments[1]}) {
            add(server, new ServerConnector(server, new HttpConnectionFactory(clear), new HTTP2CServerConnectionFactory(clear)), port);
        }
        HttpConfiguration secure = new HttpConfiguration();
        SecureRequestCustomizer customizer = new SecureRequestCustomizer();
        // The certificate is for localhost; the load asks for 127.0.0.1.
        customizer.setSniHostCheck(false);
        secure.addCustomizer(customizer);
        SslContextFactory.Server keys = new SslContextFactory.Server();
        keys.setKeyStorePath(Path.of(arguments[3], "both.p12").toString());
        keys.setKeyStorePassword("unladen");
        ALPNServerConnectionFactory agreed = new ALPNServerConnectionFactory();
        agreed.setDefaultProtocol("http/1.1");
        add(server, new ServerConnector(server, new SslConnectionFactory(keys, agreed.getProtocol()), agreed,
                new HTTP2ServerConnectionFactory(secure), new HttpConnectionFactory(secure)), arguments[2]);
        server.setHandler(new CountingServer());
        server.start();
        server.join();
    }
}
