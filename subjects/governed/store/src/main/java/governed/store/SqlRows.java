package governed.store;

import com.zaxxer.hikari.HikariDataSource;
import java.util.Optional;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;

/** By Spring's JDBC and a pool of connections. */
final class SqlRows implements Rows {

    private static final int CONNECTIONS = 16;

    private final HikariDataSource pool = new HikariDataSource();
    private final JdbcTemplate database;

    SqlRows(String url) {
        pool.setJdbcUrl(url);
        pool.setUsername(Sql.USER);
        pool.setMaximumPoolSize(CONNECTIONS);
        // The tables may be made later than the service starts.
        pool.setInitializationFailTimeout(-1);
        database = new JdbcTemplate(pool);
    }

    @Override
    public void write(long number, String text) throws NotWritten {
        try {
            database.update("INSERT INTO entries (number, text) VALUES (?, ?)", number, text);
        } catch (DataAccessException failed) {
            throw new NotWritten(failed);
        }
    }

    @Override
    public Optional<String> item(long id) {
        return database.queryForList("SELECT name FROM items WHERE id = ?", String.class, id).stream().findFirst();
    }

    @Override
    public void close() {
        pool.close();
    }
}
