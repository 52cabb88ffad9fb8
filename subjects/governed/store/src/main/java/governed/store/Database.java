package governed.store;

/** A database with items, which are read, and entries, which are written. */
interface Database {

    /** Items that there are, numbered from 0. */
    int ITEMS = 1000;

    /** Makes items and entries, or makes them as they were at first. */
    void prepare() throws Exception;

    /** Entries that were written. */
    long entries() throws Exception;

    /** For a service that reads and writes; it need not be prepared by then. */
    Rows open();

    /** The one at a URL: {@code mongodb://host:port/name}, or what a JDBC URL is without `jdbc:` and user. */
    static Database of(String url) {
        return url.startsWith("mongodb:") ? new Mongo(url) : new Sql("jdbc:" + url);
    }
}
