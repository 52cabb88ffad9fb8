package governed.store;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** MariaDB or PostgreSQL, or any other that JDBC knows. */
record Sql(String url) implements Database {

    /** Who PostgreSQL lets in; the others ask nobody. */
    static final String USER = "postgres";

    @Override
    public void prepare() throws SQLException {
        // PostgreSQL has no such option; there the database must be there.
        String more = url.startsWith("jdbc:mariadb:") ? "?createDatabaseIfNotExist=true" : "";
        try (Connection connection = connect(url + more); Statement statement = connection.createStatement()) {
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

    @Override
    public long entries() throws SQLException {
        try (Connection connection = connect(url);
                Statement statement = connection.createStatement();
                ResultSet rows = statement.executeQuery("SELECT count(*) FROM entries")) {
            rows.next();
            return rows.getLong(1);
        }
    }

    @Override
    public Rows open() {
        return new SqlRows(url);
    }

    private static Connection connect(String url) throws SQLException {
        return DriverManager.getConnection(url, USER, "");
    }
}
