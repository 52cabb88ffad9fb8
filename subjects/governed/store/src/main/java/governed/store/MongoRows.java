package governed.store;

import com.mongodb.MongoException;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.Filters;
import java.util.Optional;
import org.bson.Document;

/** By MongoDB's own driver. */
record MongoRows(MongoClient client, MongoCollection<Document> items, MongoCollection<Document> entries) implements Rows {

    @Override
    public void write(long number, String text) throws NotWritten {
        try {
            entries.insertOne(new Document("number", number).append("text", text));
        } catch (MongoException failed) {
            throw new NotWritten(failed);
        }
    }

    @Override
    public Optional<String> item(long id) {
        return Optional.ofNullable(items.find(Filters.eq("_id", (int) id)).first()).map(item -> item.getString("name"));
    }

    @Override
    public void close() {
        client.close();
    }
}
