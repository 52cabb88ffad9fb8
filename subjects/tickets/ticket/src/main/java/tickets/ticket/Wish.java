package tickets.ticket;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import tickets.common.Json;
import tickets.common.Messages.Area;
import tickets.common.Messages.Choice;
import tickets.common.Messages.CreateEvent;
import tickets.common.Messages.CreateReservation;
import tickets.common.Messages.Seat;

/** Reads what customers send, and refuses what makes no sense, with words that say why. */
final class Wish {
  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_-]{1,64}");
  private static final int MOST_SEATS = 4;
  private static final int MOST_AREAS = 1_000;
  private static final int LONGEST_SIDE = 1_000;

  private Wish() {}

  /** What is sent to create an event. */
  private record Event(String event, String artist, List<Area> areas) {}

  /** What is sent to reserve seats: their number, or which. */
  private record Reservation(String area, String user, Choice choice, Integer seats, List<Seat> picked) {}

  /** Why something is refused. */
  static final class Refused extends Exception {
    Refused(String message) {
      super(message);
    }
  }

  static CreateEvent event(String body) throws Refused {
    Event wanted = read(body, Event.class);
    name("event", wanted.event());
    List<Area> areas = wanted.areas() == null ? List.of() : wanted.areas();
    demand(!areas.isEmpty() && areas.size() <= MOST_AREAS, "`areas` must have 1 to " + MOST_AREAS + " of them");
    Set<String> names = new HashSet<>();
    for (Area area : areas) {
      name("areas[].id", area.id());
      demand(names.add(area.id()), "there are two areas `" + area.id() + "`");
      demand(area.rows() >= 1 && area.rows() <= LONGEST_SIDE && area.columns() >= 1 && area.columns() <= LONGEST_SIDE,
          "area `" + area.id() + "`: `rows` and `columns` must be from 1 to " + LONGEST_SIDE);
    }
    return new CreateEvent(wanted.event(), wanted.artist() == null ? "" : wanted.artist(), areas);
  }

  static CreateReservation reservation(String id, String event, String body) throws Refused {
    Reservation wanted = read(body, Reservation.class);
    name("event", event);
    name("area", wanted.area());
    name("user", wanted.user());
    Choice choice = wanted.choice() == null ? Choice.RANDOM : wanted.choice();
    List<Seat> picked = wanted.picked() == null ? List.of() : wanted.picked();
    if (choice == Choice.RANDOM) {
      demand(picked.isEmpty(), "`picked` is for \"choice\": \"SELF_PICK\"; write how many `seats` instead");
      demand(wanted.seats() != null && wanted.seats() >= 1 && wanted.seats() <= MOST_SEATS,
          "`seats` must be from 1 to " + MOST_SEATS);
      return new CreateReservation(id, event, wanted.area(), wanted.user(), choice, wanted.seats(), picked);
    }
    demand(!picked.isEmpty() && picked.size() <= MOST_SEATS, "`picked` must have 1 to " + MOST_SEATS + " seats");
    demand(wanted.seats() == null || wanted.seats() == picked.size(), "`seats` is not the number of those `picked`");
    return new CreateReservation(id, event, wanted.area(), wanted.user(), choice, picked.size(), picked);
  }

  private static <T> T read(String body, Class<T> type) throws Refused {
    try {
      T value = Json.read(body, type);
      demand(value != null, "the body is `null`; send a JSON object");
      return value;
    } catch (JsonProcessingException e) {
      throw new Refused("the body is not what is expected: " + e.getOriginalMessage());
    }
  }

  private static void name(String what, String name) throws Refused {
    demand(name != null && NAME.matcher(name).matches(),
        "`" + what + "` must be 1 to 64 letters, digits, `-` and `_`, not " + (name == null ? "absent" : "`" + name + "`"));
  }

  private static void demand(boolean holds, String otherwise) throws Refused {
    if (!holds) {
      throw new Refused(otherwise);
    }
  }
}
