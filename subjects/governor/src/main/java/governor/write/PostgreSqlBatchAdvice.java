package governor.write;

import java.sql.SQLException;
import net.bytebuddy.asm.Advice;
import org.postgresql.core.Query;
import org.postgresql.core.v3.QueryExecutorImpl;

/** The same for several statements at once. */
public final class PostgreSqlBatchAdvice {

    private PostgreSqlBatchAdvice() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.This QueryExecutorImpl executor, @Advice.Argument(0) Query[] queries) throws SQLException {
        String database = executor.getDatabase();
        if (Writes.isWatched(database)) {
            for (Query query : queries) {
                Writes.check(database, query.getNativeSql());
            }
        }
    }
}
