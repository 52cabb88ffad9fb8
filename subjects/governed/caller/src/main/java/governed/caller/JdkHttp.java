package governed.caller;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.HttpURLConnection;
import java.net.MalformedURLException;
import java.net.URL;
import java.nio.charset.StandardCharsets;

/** What the JDK has had since 1.1. It keeps five idle connections for a host, unless `http.maxConnections` says otherwise. */
final class JdkHttp implements Client {

    private final URL url;

    JdkHttp(String url) {
        try {
            this.url = new URL(url);
        } catch (MalformedURLException wrong) {
            throw new UncheckedIOException(wrong);
        }
    }

    @Override
    public String call() throws IOException {
        HttpURLConnection connection = (HttpURLConnection) url.openConnection();
        try (InputStream body = connection.getInputStream()) {
            return new String(body.readAllBytes(), StandardCharsets.UTF_8);
        }
    }
}
