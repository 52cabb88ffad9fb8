package governed.proof;

import static org.assertj.core.api.Assertions.assertThat;

import governed.store.Store;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.ConfigurableApplicationContext;

/** Write prohibition, on real databases: what was written is asked of them in a way that the agent does not touch. */
class WriteProof {

    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static Bench bench;

    @BeforeAll
    static void start(@TempDir Path folder) throws Exception {
        bench = new Bench(folder);
    }

    @AfterAll
    static void stop() throws Exception {
        bench.close();
    }

    @ParameterizedTest
    @ValueSource(strings = {"mariadb", "postgresql"})
    void nothingIsWrittenWhileItIsProhibited(String database) throws Exception {
        int port = Bench.freePort();
        bench.start(database + ".sh", port);
        String url = "jdbc:" + database + "://127.0.0.1:" + port + "/shop?user=postgres";
        prepare(url);
        // What is in the class path for the sake of the other proofs stays out.
        try (ConfigurableApplicationContext store = Store.start("spring.datasource.url=" + url, "spring.cloud.zookeeper.enabled=false")) {
            String address = "http://127.0.0.1:" + store.getEnvironment().getProperty("local.server.port");
            insert(address, 5);
            assertThat(rows(url)).as("without a rule").isEqualTo(5);

            bench.rule("write", "databases=shop\n");
            Bench.await("the rule holds", () -> {
                long before = rows(url);
                insert(address, 1);
                return rows(url) == before;
            });
            long before = rows(url);
            insert(address, 5);
            assertThat(rows(url)).isEqualTo(before);
            assertThat(refusal(url)).contains("`shop`");
            assertThat(batchRefusal(url)).contains("`shop`");
            assertThat(post(address + "/query").body()).as("reading goes on").isEqualTo("an item");

            bench.rule("write", "databases=another\n");
            Bench.await("writing goes on", () -> {
                insert(address, 1);
                return rows(url) > before;
            });
        } finally {
            bench.noRule("write");
        }
    }

    private static void prepare(String url) throws SQLException {
        String more = url.startsWith("jdbc:mariadb") ? "&createDatabaseIfNotExist=true" : "";
        try (Connection connection = DriverManager.getConnection(url + more); Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE items (id INT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL)");
            statement.execute("INSERT INTO items VALUES (0, 'an item')");
            statement.execute("CREATE TABLE entries (number BIGINT NOT NULL, text VARCHAR(200) NOT NULL)");
        }
    }

    private static long rows(String url) throws SQLException {
        try (Connection connection = DriverManager.getConnection(url);
                Statement statement = connection.createStatement();
                ResultSet result = statement.executeQuery("SELECT count(*) FROM entries")) {
            result.next();
            return result.getLong(1);
        }
    }

    /** What the driver says to a plain statement. */
    private static String refusal(String url) throws SQLException {
        try (Connection connection = DriverManager.getConnection(url); Statement statement = connection.createStatement()) {
            statement.execute("DELETE FROM entries");
            return "nothing";
        } catch (SQLException refused) {
            return refused.getMessage();
        }
    }

    /** What it says to several at once. */
    private static String batchRefusal(String url) throws SQLException {
        try (Connection connection = DriverManager.getConnection(url);
                PreparedStatement statement = connection.prepareStatement("INSERT INTO entries VALUES (?, ?)")) {
            for (int row = 0; row < 3; row++) {
                statement.setLong(1, row);
                statement.setString(2, "of a batch");
                statement.addBatch();
            }
            statement.executeBatch();
            return "nothing";
        } catch (SQLException refused) {
            return refused.getMessage();
        }
    }

    private static void insert(String address, int times) throws Exception {
        for (int time = 0; time < times; time++) {
            assertThat(post(address + "/insert").statusCode()).isEqualTo(202);
        }
    }

    private static HttpResponse<String> post(String url) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).POST(HttpRequest.BodyPublishers.noBody()).build();
        return CLIENT.send(request, HttpResponse.BodyHandlers.ofString());
    }
}
