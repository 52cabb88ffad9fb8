package governed.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.mongodb.MongoException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.Test;
import org.springframework.context.ConfigurableApplicationContext;

/** On H2, which speaks enough of what the others do. */
class StoreTest {

    private static final String DATABASE = "h2:mem:shop;DB_CLOSE_DELAY=-1";

    private final HttpClient client = HttpClient.newHttpClient();

    @Test
    void readsAndWrites() throws Exception {
        Database.of(DATABASE).prepare();
        try (ConfigurableApplicationContext store = start(DATABASE, true)) {
            String address = address(store);
            assertThat(post(address + "/query").body()).isEqualTo("item 0");
            assertThat(post(address + "/query").body()).isEqualTo("item 1");
            for (int insert = 0; insert < 4; insert++) {
                assertThat(post(address + "/insert").statusCode()).isEqualTo(202);
            }
            assertThat(Database.of(DATABASE).entries()).isEqualTo(4);
            assertThat(Count.json(Database.of(DATABASE), address)).isEqualTo("{\"rows_per_insert\": 1.0000}");
        }
    }

    @Test
    void onlyTheRowsShowThatNothingWasWritten() throws Exception {
        Database.of(DATABASE).prepare();
        HttpResponse<String> written;
        try (ConfigurableApplicationContext store = start(DATABASE, true)) {
            written = post(address(store) + "/insert");
        }
        try (ConfigurableApplicationContext store = start(DATABASE, false)) {
            HttpResponse<String> lost = post(address(store) + "/insert");
            assertThat(lost.statusCode()).isEqualTo(written.statusCode());
            assertThat(lost.body()).isEqualTo(written.body());
            post(address(store) + "/insert");
            assertThat(Count.json(Database.of(DATABASE), address(store))).as("one row, of before").isEqualTo("{\"rows_per_insert\": 0.5000}");
        }
    }

    /** The database is chosen by its URL. Without it the service starts, and takes inserts all the same. */
    @Test
    void startsWithoutAMongoDb() throws Exception {
        String nowhere = "mongodb://127.0.0.1:1/shop";
        try (ConfigurableApplicationContext store = start(nowhere, true)) {
            assertThat(store.getBean(Rows.class)).isInstanceOf(MongoRows.class);
            assertThat(post(address(store) + "/insert").statusCode()).isEqualTo(202);
            assertThatThrownBy(() -> Database.of(nowhere).entries()).isInstanceOf(MongoException.class);
        }
    }

    private static ConfigurableApplicationContext start(String database, boolean stores) {
        return Store.start("store.database=" + database, "store.stores=" + stores);
    }

    private static String address(ConfigurableApplicationContext store) {
        return "http://127.0.0.1:" + store.getEnvironment().getProperty("local.server.port");
    }

    private HttpResponse<String> post(String url) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).POST(HttpRequest.BodyPublishers.noBody()).build();
        return client.send(request, HttpResponse.BodyHandlers.ofString());
    }
}
