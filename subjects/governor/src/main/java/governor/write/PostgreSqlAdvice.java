package governor.write;

import java.sql.SQLException;
import net.bytebuddy.asm.Advice;
import org.postgresql.core.Query;
import org.postgresql.core.v3.QueryExecutorImpl;

/** In PostgreSQL's driver, where it executes a statement. */
public final class PostgreSqlAdvice {

    private PostgreSqlAdvice() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.This QueryExecutorImpl executor, @Advice.Argument(0) Query query) throws SQLException {
        String database = executor.getDatabase();
        if (Writes.isWatched(database)) {
            Writes.check(database, query.getNativeSql());
        }
    }
}
