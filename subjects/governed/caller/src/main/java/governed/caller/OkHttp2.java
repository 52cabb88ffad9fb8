package governed.caller;

import com.squareup.okhttp.ConnectionPool;
import com.squareup.okhttp.OkHttpClient;
import com.squareup.okhttp.Request;
import com.squareup.okhttp.ResponseBody;
import java.io.IOException;

/** OkHttp 2. */
final class OkHttp2 implements Client {

    private static final int MOST_IDLE_CONNECTIONS = 200;
    private static final long KEEP_ALIVE_MILLISECONDS = 300_000;

    private final OkHttpClient client = new OkHttpClient();
    private final Request request;

    OkHttp2(String url) {
        client.setConnectionPool(new ConnectionPool(MOST_IDLE_CONNECTIONS, KEEP_ALIVE_MILLISECONDS));
        request = new Request.Builder().url(url).build();
    }

    @Override
    public String call() throws IOException {
        try (ResponseBody body = client.newCall(request).execute().body()) {
            return body.string();
        }
    }

    @Override
    public void close() {
        client.getConnectionPool().evictAll();
    }
}
