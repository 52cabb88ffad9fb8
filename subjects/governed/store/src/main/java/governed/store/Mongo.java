package governed.store;

import com.mongodb.ConnectionString;
import com.mongodb.MongoClientSettings;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.bson.Document;

/** MongoDB, or what speaks its protocol. */
record Mongo(String url) implements Database {

    private static final int CONNECTIONS = 16;
    /** The driver's own half a minute is longer than a request may take. */
    private static final int PATIENCE_SECONDS = 5;

    @Override
    public void prepare() {
        try (MongoClient client = connect()) {
            entries(client).drop();
            items(client).drop();
            List<Document> items = IntStream.range(0, ITEMS).mapToObj(id -> new Document("_id", id).append("name", "item " + id)).toList();
            items(client).insertMany(items);
        }
    }

    @Override
    public long entries() {
        try (MongoClient client = connect()) {
            return entries(client).countDocuments();
        }
    }

    @Override
    public Rows open() {
        MongoClient client = connect();
        return new MongoRows(client, items(client), entries(client));
    }

    private MongoCollection<Document> items(MongoClient client) {
        return client.getDatabase(new ConnectionString(url).getDatabase()).getCollection("items");
    }

    private MongoCollection<Document> entries(MongoClient client) {
        return client.getDatabase(new ConnectionString(url).getDatabase()).getCollection("entries");
    }

    private MongoClient connect() {
        MongoClientSettings settings = MongoClientSettings.builder()
                .applyConnectionString(new ConnectionString(url))
                .applyToClusterSettings(cluster -> cluster.serverSelectionTimeout(PATIENCE_SECONDS, TimeUnit.SECONDS))
                .applyToConnectionPoolSettings(pool -> pool.maxSize(CONNECTIONS))
                .build();
        return MongoClients.create(settings);
    }
}
