package tickets.check;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import tickets.common.Messages.AreaStatus;
import tickets.common.Messages.CreateReservation;
import tickets.common.Messages.Result;
import tickets.common.Messages.Seat;
import tickets.common.Messages.State;
import tickets.common.Topics;

/** What stands in the topics, and what is wrong with it. */
final class Books {
  /** A million reservations may be wrong in the same way; these many are enough to see how. */
  private static final int EXAMPLES = 10;

  private final Set<UUID> wanted = new HashSet<>();
  private final Set<UUID> decided = new HashSet<>();
  private final Map<String, Set<Seat>> sold = new HashMap<>();
  private final Map<String, AreaStatus> areas = new HashMap<>();
  private final List<String> problems = new ArrayList<>();
  private final String event;
  private long furtherProblems;
  private long accepted;
  private long reserved;
  private long refused;

  /** Books of all events; what is counted is the one that matters. */
  Books(String event) {
    this.event = event;
  }

  /** A reservation that was accepted. */
  void want(CreateReservation wish) {
    if (!wanted.add(UUID.fromString(wish.id()))) {
      complain("reservation " + wish.id() + " was handed on twice");
    }
    accepted += one(wish.event());
  }

  private int one(String event) {
    return event.equals(this.event) ? 1 : 0;
  }

  /** How full an area is; the last one said holds. */
  void area(AreaStatus status) {
    areas.put(Topics.area(status.event(), status.area()), status);
  }

  /** The last word on a reservation. */
  void decide(Result result) {
    if (!decided.add(UUID.fromString(result.id()))) {
      complain("reservation " + result.id() + " has two results");
    }
    if (result.state() == State.RESERVED) {
      reserved += one(result.event());
      sell(result);
    } else if (result.state() == State.FAILED) {
      refused += one(result.event());
    } else {
      complain("reservation " + result.id() + " is " + result.state() + ", which is no last word");
    }
  }

  private void sell(Result result) {
    Set<Seat> taken = sold.computeIfAbsent(Topics.area(result.event(), result.area()), area -> new HashSet<>());
    if (result.seats().isEmpty()) {
      complain("reservation " + result.id() + " has no seats");
    }
    for (Seat seat : result.seats()) {
      if (!taken.add(seat)) {
        complain("row " + seat.row() + ", seat " + seat.column() + " of area " + result.area() + " of " + result.event()
            + " was sold twice, the second time to " + result.id());
      }
    }
  }

  /** Accepted reservations that have no result yet, as far as the topics say. */
  long open() {
    return wanted.stream().filter(id -> !decided.contains(id)).count();
  }

  long wanted() {
    return wanted.size();
  }

  /**
   * Everything that is wrong, in words; empty if nothing is.
   *
   * @param accepted reservations that the ticket services say that they accepted
   * @param lost messages that they say they could not store
   */
  List<String> problems(long accepted, long lost) {
    List<String> all = new ArrayList<>(problems);
    if (furtherProblems > 0) {
      all.add("and " + furtherProblems + " more of this kind");
    }
    if (lost > 0) {
      all.add(lost + " messages were accepted and then not stored");
    }
    if (wanted.size() != accepted) {
      all.add(accepted + " reservations were accepted, but " + wanted.size() + " were handed on");
    }
    long open = open();
    if (open > 0) {
      all.add(open + " of " + wanted.size() + " reservations have no result");
    }
    long unasked = decided.stream().filter(id -> !wanted.contains(id)).count();
    if (unasked > 0) {
      all.add(unasked + " results are of reservations that nobody wanted");
    }
    areas.forEach((key, area) -> compare(key, area, all));
    sold.keySet().stream().filter(key -> !areas.containsKey(key))
        .forEach(key -> all.add("seats were sold in " + key + ", which is not there"));
    return all;
  }

  private void compare(String key, AreaStatus area, List<String> all) {
    Set<Seat> seats = sold.getOrDefault(key, Collections.emptySet());
    int free = area.rows() * area.columns() - seats.size();
    if (free != area.free()) {
      all.add("area " + key + " says that " + area.free() + " seats are free, but " + free + " were not sold");
    }
    if (seats.stream().anyMatch(it -> it.row() < 0 || it.row() >= area.rows() || it.column() < 0
        || it.column() >= area.columns())) {
      all.add("area " + key + " has sold a seat that it does not have");
    }
  }

  private void complain(String problem) {
    if (problems.size() < EXAMPLES) {
      problems.add(problem);
    } else {
      furtherProblems++;
    }
  }

  /** What the study compares between its variants. */
  Map<String, Long> numbers() {
    Map<String, Long> numbers = new LinkedHashMap<>();
    numbers.put("accepted", accepted);
    numbers.put("reserved", reserved);
    // For whatever reason: who comes too late for a full hall, and who for the row that he wanted, is a matter of chance.
    numbers.put("refused", refused);
    numbers.put("seats", areas.entrySet().stream().filter(area -> one(area.getValue().event()) == 1)
        .mapToLong(area -> sold.getOrDefault(area.getKey(), Collections.emptySet()).size()).sum());
    return numbers;
  }
}
