import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;

/**
 * A server by Jetty: some SHA-256 and a little text for every request.
 *
 * <p>{@code Server PORT [EXTRA]}; EXTRA: rounds of SHA-256 more than its own.
 */
public final class Server extends Handler.Abstract {
    /** Rounds of 1 KiB each for a request. */
    private static final int OWN = 48;

    private final int extra;

    private Server(int extra) {
        this.extra = extra;
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) throws NoSuchAlgorithmException {
        byte[] sum = work(OWN);
        byte[] more = work(extra);
        // Never so, but nobody can know that without doing the work.
        boolean same = more.length > 0 && MessageDigest.isEqual(sum, more);
        byte[] body = (same ? "the same" : text(sum)).getBytes(StandardCharsets.UTF_8);
        response.getHeaders().put(HttpHeader.CONTENT_TYPE, "text/plain");
        response.getHeaders().put(HttpHeader.CONTENT_LENGTH, body.length);
        response.write(true, java.nio.ByteBuffer.wrap(body), callback);
        return true;
    }

    private static byte[] work(int rounds) throws NoSuchAlgorithmException {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        byte[] data = new byte[1024];
        byte[] sum = {};
        for (int round = 0; round < rounds; round++) {
            data[0] = (byte) round;
            sum = digest.digest(data);
            System.arraycopy(sum, 0, data, 1, sum.length);
        }
        return sum;
    }

    private static String text(byte[] sum) {
        StringBuilder text = new StringBuilder();
        for (int id = 0; id < 20; id++) {
            Map<String, String> item = new TreeMap<>();
            item.put("id", Integer.toString(id));
            item.put("name", HexFormat.of().formatHex(sum));
            text.append(item).append('\n');
        }
        return text.toString();
    }

    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 0) {
            System.err.println("usage: Server PORT [EXTRA]");
            System.exit(2);
        }
        org.eclipse.jetty.server.Server server = new org.eclipse.jetty.server.Server();
        ServerConnector connector = new ServerConnector(server);
        connector.setHost("127.0.0.1");
        connector.setPort(Integer.parseInt(arguments[0]));
        server.addConnector(connector);
        server.setHandler(new Server(arguments.length > 1 ? Integer.parseInt(arguments[1]) : 0));
        server.start();
        server.join();
    }
}
