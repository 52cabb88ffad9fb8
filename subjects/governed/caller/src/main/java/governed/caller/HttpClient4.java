package governed.caller;

import java.io.IOException;
import org.apache.http.client.methods.CloseableHttpResponse;
import org.apache.http.client.methods.HttpGet;
import org.apache.http.impl.client.CloseableHttpClient;
import org.apache.http.impl.client.HttpClientBuilder;
import org.apache.http.util.EntityUtils;

/** Apache HttpClient 4. */
final class HttpClient4 implements Client {

    private static final int MOST_CONNECTIONS = 200;

    private final CloseableHttpClient client =
            HttpClientBuilder.create().setMaxConnTotal(MOST_CONNECTIONS).setMaxConnPerRoute(MOST_CONNECTIONS).build();
    private final String url;

    HttpClient4(String url) {
        this.url = url;
    }

    @Override
    public String call() throws IOException {
        try (CloseableHttpResponse answer = client.execute(new HttpGet(url))) {
            return EntityUtils.toString(answer.getEntity());
        }
    }

    @Override
    public void close() throws IOException {
        client.close();
    }
}
