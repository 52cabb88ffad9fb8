package governed.store;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.Test;
import org.springframework.context.ConfigurableApplicationContext;

/** On H2, which speaks enough of what the others do. */
class StoreTest {

    private static final String DATABASE = "jdbc:h2:mem:shop;DB_CLOSE_DELAY=-1;USER=sa";

    private final HttpClient client = HttpClient.newHttpClient();

    @Test
    void readsAndWrites() throws Exception {
        Tables.prepare(DATABASE);
        try (ConfigurableApplicationContext store = start(true)) {
            String address = address(store);
            assertThat(post(address + "/query").body()).isEqualTo("item 0");
            assertThat(post(address + "/query").body()).isEqualTo("item 1");
            for (int insert = 0; insert < 4; insert++) {
                assertThat(post(address + "/insert").statusCode()).isEqualTo(202);
            }
            assertThat(Tables.entries(DATABASE)).isEqualTo(4);
            assertThat(Count.json(DATABASE, address)).isEqualTo("{\"rows_per_insert\": 1.0000}");
        }
    }

    @Test
    void onlyTheRowsShowThatNothingWasWritten() throws Exception {
        Tables.prepare(DATABASE);
        HttpResponse<String> written;
        try (ConfigurableApplicationContext store = start(true)) {
            written = post(address(store) + "/insert");
        }
        try (ConfigurableApplicationContext store = start(false)) {
            HttpResponse<String> lost = post(address(store) + "/insert");
            assertThat(lost.statusCode()).isEqualTo(written.statusCode());
            assertThat(lost.body()).isEqualTo(written.body());
            post(address(store) + "/insert");
            assertThat(Count.json(DATABASE, address(store))).as("one row, of before").isEqualTo("{\"rows_per_insert\": 0.5000}");
        }
    }

    private static ConfigurableApplicationContext start(boolean stores) {
        return Store.start("spring.datasource.url=" + DATABASE, "store.stores=" + stores);
    }

    private static String address(ConfigurableApplicationContext store) {
        return "http://127.0.0.1:" + store.getEnvironment().getProperty("local.server.port");
    }

    private HttpResponse<String> post(String url) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).POST(HttpRequest.BodyPublishers.noBody()).build();
        return client.send(request, HttpResponse.BodyHandlers.ofString());
    }
}
