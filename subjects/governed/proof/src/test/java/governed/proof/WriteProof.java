package governed.proof;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.MongoException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import governed.store.Store;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.bson.Document;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
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
        String name = database + "://127.0.0.1:" + port + "/shop";
        String url = "jdbc:" + name + "?user=postgres";
        prepare(url);
        // What is in the class path for the sake of the other proofs stays out.
        try (ConfigurableApplicationContext store = Store.start("store.database=" + name, "spring.cloud.zookeeper.enabled=false")) {
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

    /** With FerretDB, if it was built: that takes minutes. */
    @Test
    void nothingIsWrittenToMongoDbEither() throws Exception {
        assumeTrue(Files.isExecutable(Path.of(System.getProperty("parts"), "../../target/studies/ferretdb/ferretdb")));
        int port = Bench.freePort();
        bench.start("mongodb.sh", port);
        String url = "mongodb://127.0.0.1:" + port + "/shop";
        try (MongoClient client = MongoClients.create(url);
                ConfigurableApplicationContext store = Store.start("store.database=" + url, "spring.cloud.zookeeper.enabled=false")) {
            MongoDatabase shop = client.getDatabase("shop");
            MongoCollection<Document> entries = shop.getCollection("entries");
            shop.getCollection("items").insertOne(new Document("_id", 0).append("name", "an item"));
            String address = "http://127.0.0.1:" + store.getEnvironment().getProperty("local.server.port");
            insert(address, 5);
            assertThat(entries.countDocuments()).as("without a rule").isEqualTo(5);

            bench.rule("write", "databases=shop\n");
            Bench.await("the rule holds", () -> {
                long before = entries.countDocuments();
                insert(address, 1);
                return entries.countDocuments() == before;
            });
            long before = entries.countDocuments();
            insert(address, 5);
            assertThat(said(entries::drop)).contains("`shop`");
            assertThat(said(() -> shop.createCollection("more"))).contains("`shop`");
            assertThat(entries.countDocuments()).isEqualTo(before);
            assertThat(post(address + "/query").body()).as("reading goes on").isEqualTo("an item");
        } finally {
            bench.noRule("write");
        }
    }

    /** What is refused is not sent: no server is needed. */
    @Test
    void mongoDbIsNotEvenAsked() throws Exception {
        bench.rule("write", "databases=shop\n");
        MongoClientSettings settings = MongoClientSettings.builder()
                .applyConnectionString(new ConnectionString("mongodb://127.0.0.1:1"))
                .applyToClusterSettings(cluster -> cluster.serverSelectionTimeout(500, TimeUnit.MILLISECONDS))
                .build();
        try (MongoClient client = MongoClients.create(settings)) {
            MongoCollection<Document> entries = client.getDatabase("shop").getCollection("entries");
            Bench.await("the rule holds", () -> said(() -> entries.insertOne(new Document())).contains("`shop`"));
            List<Executable> writes = List.of(
                    () -> entries.insertMany(List.of(new Document(), new Document())),
                    () -> entries.updateOne(new Document(), new Document("$set", new Document("a", 1))),
                    () -> entries.deleteMany(new Document()),
                    () -> entries.findOneAndDelete(new Document()));
            for (Executable write : writes) {
                assertThat(said(write)).contains("`shop`");
            }
            assertThat(said(() -> entries.find().first())).as("reading looks for the server").contains("Timed out");
            MongoCollection<Document> elsewhere = client.getDatabase("another").getCollection("entries");
            assertThat(said(() -> elsewhere.insertOne(new Document()))).contains("Timed out");
        } finally {
            bench.noRule("write");
        }
    }

    private static String said(Executable access) {
        return assertThrows(MongoException.class, access).getMessage();
    }

    private static void prepare(String url) throws Exception {
        String whole = url + (url.startsWith("jdbc:mariadb") ? "&createDatabaseIfNotExist=true" : "");
        // PostgreSQL answers while it starts, and lets nobody in.
        Bench.await("the database lets clients in", () -> letsIn(whole));
        try (Connection connection = DriverManager.getConnection(whole); Statement statement = connection.createStatement()) {
            statement.execute("CREATE TABLE items (id INT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL)");
            statement.execute("INSERT INTO items VALUES (0, 'an item')");
            statement.execute("CREATE TABLE entries (number BIGINT NOT NULL, text VARCHAR(200) NOT NULL)");
        }
    }

    private static boolean letsIn(String url) {
        try (Connection connection = DriverManager.getConnection(url)) {
            return connection.isValid(1);
        } catch (SQLException starting) {
            return false;
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
