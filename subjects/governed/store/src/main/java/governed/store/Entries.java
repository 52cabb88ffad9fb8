package governed.store;

import java.util.concurrent.atomic.AtomicLong;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * One statement per request.
 *
 * <p>An insert is answered with 202 whether or not the row could be written, as by a service that writes an audit trail. So neither the
 * status nor the body tells whether it was: the rows do.
 */
@RestController
@RequestMapping(produces = MediaType.TEXT_PLAIN_VALUE)
public class Entries {

    private static final String TEXT = "an entry of about a hundred characters, so that a row is neither tiny nor large, and all are alike";

    private final Rows rows;
    private final boolean stores;
    private final AtomicLong inserts = new AtomicLong();
    private final AtomicLong queries = new AtomicLong();

    /**
     * Of a database.
     *
     * @param stores whether inserts are written; if not, they fail before they reach the driver
     */
    Entries(Rows rows, @Value("${store.stores}") boolean stores) {
        this.rows = rows;
        this.stores = stores;
    }

    /** Writes a row. */
    @PostMapping("/insert")
    public ResponseEntity<String> insert() {
        long number = inserts.incrementAndGet();
        try {
            if (!stores) {
                throw new Rows.NotWritten(null);
            }
            rows.write(number, TEXT);
        } catch (Rows.NotWritten asItMayBe) {
            return ResponseEntity.accepted().body("taken");
        }
        return ResponseEntity.accepted().body("taken");
    }

    /** Reads an item, the next one each time. A POST, too, so that one load fits both. */
    @RequestMapping("/query")
    public ResponseEntity<String> query() {
        long id = queries.getAndIncrement() % Database.ITEMS;
        return rows.item(id).map(ResponseEntity::ok).orElse(ResponseEntity.status(HttpStatus.NOT_FOUND).body("no item " + id));
    }

    /** Inserts that were taken so far. */
    @GetMapping("/inserts")
    public String inserts() {
        return Long.toString(inserts.get());
    }
}
