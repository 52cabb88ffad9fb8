package governor.write;

import java.sql.SQLException;
import net.bytebuddy.asm.Advice;
import org.mariadb.jdbc.client.impl.StandardClient;
import org.mariadb.jdbc.message.ClientMessage;

/** The same for several statements at once. */
public final class MariaDbBatchAdvice {

    private MariaDbBatchAdvice() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.This StandardClient client, @Advice.Argument(0) ClientMessage[] messages) throws SQLException {
        String database = client.getContext().getDatabase();
        if (Writes.isWatched(database)) {
            for (ClientMessage message : messages) {
                Writes.check(database, message.description());
            }
        }
    }
}
