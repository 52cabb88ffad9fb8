package governor.write;

import java.sql.SQLException;
import net.bytebuddy.asm.Advice;
import org.mariadb.jdbc.client.impl.StandardClient;
import org.mariadb.jdbc.message.ClientMessage;

/** In MariaDB's driver, where it executes a statement. (Where it sends one is too late: half a batch would be under way.) */
public final class MariaDbAdvice {

    private MariaDbAdvice() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.This StandardClient client, @Advice.Argument(0) ClientMessage message) throws SQLException {
        String database = client.getContext().getDatabase();
        if (Writes.isWatched(database)) {
            Writes.check(database, message.description());
        }
    }
}
