package governed.caller;

import java.io.IOException;
import org.apache.commons.httpclient.HttpClient;
import org.apache.commons.httpclient.MultiThreadedHttpConnectionManager;
import org.apache.commons.httpclient.methods.GetMethod;

/** Apache HttpClient 3. */
final class HttpClient3 implements Client {

    private static final int MOST_CONNECTIONS = 200;

    private final MultiThreadedHttpConnectionManager connections = new MultiThreadedHttpConnectionManager();
    private final HttpClient client;
    private final String url;

    HttpClient3(String url) {
        this.url = url;
        connections.getParams().setDefaultMaxConnectionsPerHost(MOST_CONNECTIONS);
        connections.getParams().setMaxTotalConnections(MOST_CONNECTIONS);
        client = new HttpClient(connections);
    }

    @Override
    public String call() throws IOException {
        GetMethod request = new GetMethod(url);
        try {
            client.executeMethod(request);
            return request.getResponseBodyAsString();
        } finally {
            request.releaseConnection();
        }
    }

    @Override
    public void close() {
        connections.shutdown();
    }
}
