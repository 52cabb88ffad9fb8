package governed.store;

import java.util.Optional;

/** What the service does with a database. */
interface Rows extends AutoCloseable {

    /** An entry was not written, whoever is to blame. */
    final class NotWritten extends Exception {
        private static final long serialVersionUID = 1L;

        NotWritten(Throwable cause) {
            super(cause);
        }
    }

    /** Writes an entry. */
    void write(long number, String text) throws NotWritten;

    /** Name of an item. */
    Optional<String> item(long id);

    @Override
    void close();
}
