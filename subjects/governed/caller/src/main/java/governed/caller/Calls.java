package governed.caller;

import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/**
 * One call per request.
 *
 * <p>The body is the same whatever the echo says, so that those who hand tags on and those who do not have done the same work. What it says
 * stands in the header {@code x-seen}.
 */
@RestController
public class Calls {

    private final Client client;

    Calls(Client client) {
        this.client = client;
    }

    @GetMapping(path = "/call", produces = MediaType.TEXT_PLAIN_VALUE)
    public ResponseEntity<String> call() throws Exception {
        return ResponseEntity.ok().header("x-seen", client.call()).body("called");
    }
}
