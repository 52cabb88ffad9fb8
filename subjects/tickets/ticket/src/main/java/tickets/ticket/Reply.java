package tickets.ticket;

import java.util.Map;
import tickets.common.Json;

/** What a request is answered with. */
record Reply(int status, String type, String body) {
  private static final String JSON = "application/json";

  static Reply json(int status, Object value) {
    return new Reply(status, JSON, Json.write(value));
  }

  static Reply text(String text) {
    return new Reply(200, "text/plain", text);
  }

  /** Why not, and what to do. */
  static Reply error(int status, String why) {
    return json(status, Map.of("error", why));
  }
}
