package governor.write;

import java.sql.SQLException;
import java.util.Locale;
import java.util.Set;

/** Called by the drivers before they send a statement. */
public final class Writes {

    /** Databases that are not to be written, by name in lower case. */
    static volatile Set<String> prohibited = Set.of();

    private Writes() {}

    /** Whether there is anything to ask about statements of this database. */
    public static boolean isWatched(String database) {
        Set<String> names = prohibited;
        return !names.isEmpty() && database != null && names.contains(database.toLowerCase(Locale.ROOT));
    }

    /**
     * Refuses a statement that writes.
     *
     * @throws SQLException if it does; SQLSTATE 25006, as of a database that can only be read
     */
    public static void check(String database, String statement) throws SQLException {
        if (statement != null && Sql.writes(statement)) {
            throw new SQLException(refusal(database), "25006");
        }
    }

    /** What is said to who wants to write. */
    public static String refusal(String database) {
        return "the governor lets nobody write to the database `" + database + "`";
    }
}
