package tickets.ticket;

import java.util.Optional;
import tickets.common.Messages.Result;

/** Where results are. */
interface Directory {
  /** Whether requests can be answered. */
  boolean isReady();

  /** The base URL of the instance that has this reservation; empty if it is this one. */
  Optional<String> elsewhere(String id) throws NotNow;

  /** The result, if this instance has it. */
  Optional<Result> here(String id) throws NotNow;

  /** The streams are being given to other instances, or have not started. */
  final class NotNow extends Exception {
    NotNow(String message, Throwable cause) {
      super(message, cause);
    }
  }
}
