package governed.store;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** The two tables: {@code items} is read, {@code entries} is written. */
final class Tables {

    /** Items that there are, numbered from 0. */
    static final int ITEMS = 1000;

    private Tables() {}

    /** Makes them, or makes them as they were at first. */
    static void prepare(String url) throws SQLException {
        // PostgreSQL has no such option; there the database must be there.
        String more = url.startsWith("jdbc:mariadb:") ? (url.contains("?") ? "&" : "?") + "createDatabaseIfNotExist=true" : "";
        try (Connection connection = DriverManager.getConnection(url + more); Statement statement = connection.createStatement()) {
            statement.execute("DROP TABLE IF EXISTS items");
            statement.execute("DROP TABLE IF EXISTS entries");
            statement.execute("CREATE TABLE items (id INT NOT NULL PRIMARY KEY, name VARCHAR(100) NOT NULL)");
            statement.execute("CREATE TABLE entries (number BIGINT NOT NULL, text VARCHAR(200) NOT NULL)");
            connection.setAutoCommit(false);
            try (PreparedStatement insert = connection.prepareStatement("INSERT INTO items (id, name) VALUES (?, ?)")) {
                for (int id = 0; id < ITEMS; id++) {
                    insert.setInt(1, id);
                    insert.setString(2, "item " + id);
                    insert.addBatch();
                }
                insert.executeBatch();
            }
            connection.commit();
        }
    }

    /** Rows that were written. */
    static long entries(String url) throws SQLException {
        try (Connection connection = DriverManager.getConnection(url);
                Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT count(*) FROM entries")) {
            rows.next();
            return rows.getLong(1);
        }
    }
}
