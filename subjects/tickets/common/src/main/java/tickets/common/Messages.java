package tickets.common;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonSubTypes;
import com.fasterxml.jackson.annotation.JsonTypeInfo;
import java.util.List;

/** What stands in the topics, as JSON. */
public final class Messages {
  private Messages() {}

  /** A part of a hall: rows of as many seats each. */
  public record Area(String id, int rows, int columns) {}

  /** A seat; row and column count from 0. */
  public record Seat(int row, int column) {}

  /** An event that shall be; its name is its key. */
  public record CreateEvent(String event, String artist, List<Area> areas) {}

  /** Who chooses the seats: the shop, or the customer. */
  public enum Choice { RANDOM, SELF_PICK }

  /** A wish for seats. {@code picked} is empty unless the customer chooses; else there are {@code seats} of them. */
  public record CreateReservation(
      String id, String event, String area, String user, Choice choice, int seats, List<Seat> picked) {}

  /** What an area is told to do. One topic for both, so that an area is open before its first reservation. */
  @JsonTypeInfo(use = JsonTypeInfo.Id.NAME, property = "command")
  @JsonSubTypes({@JsonSubTypes.Type(value = Open.class, name = "open"),
      @JsonSubTypes.Type(value = Reserve.class, name = "reserve")})
  public sealed interface AreaCommand permits Open, Reserve {}

  /** An area comes into being, with every seat free. */
  public record Open(String event, Area area) implements AreaCommand {}

  /** Seats of an area are wanted. */
  public record Reserve(CreateReservation reservation) implements AreaCommand {}

  /** How full an area is. */
  public record AreaStatus(String event, String area, int rows, int columns, int free) {}

  /** Where a reservation stands. */
  public enum State { PROCESSING, RESERVED, FAILED }

  /** What became of a reservation: its seats, or the reason why there are none. */
  @JsonInclude(JsonInclude.Include.NON_EMPTY)
  public record Result(String id, String event, String area, State state, List<Seat> seats, String reason) {
    /** Not decided yet. */
    public static Result processing(CreateReservation wish) {
      return new Result(wish.id(), wish.event(), wish.area(), State.PROCESSING, List.of(), null);
    }

    /** These seats. */
    public static Result reserved(CreateReservation wish, List<Seat> seats) {
      return new Result(wish.id(), wish.event(), wish.area(), State.RESERVED, seats, null);
    }

    /** None, and why. */
    public static Result failed(CreateReservation wish, String reason) {
      return new Result(wish.id(), wish.event(), wish.area(), State.FAILED, List.of(), reason);
    }

    /** JSON leaves an empty list out; here it is one. */
    public Result {
      seats = seats == null ? List.of() : List.copyOf(seats);
    }
  }

  /** Why there are no seats, in the words that customers see. */
  public static final class Reasons {
    /** Fewer seats are free than were asked for. */
    public static final String SOLD_OUT = "sold out";

    /** Enough are free, but not in one row beside each other. */
    public static final String NOT_TOGETHER = "no seats side by side";

    /** A seat that the customer has chosen is somebody else's. */
    public static final String TAKEN = "seat taken";

    /** A seat that the customer has chosen is not in the hall, or was chosen twice. */
    public static final String NO_SUCH_SEAT = "no such seat";

    /** The event has no such area, or there is no such event. */
    public static final String NO_SUCH_AREA = "no such area";

    private Reasons() {}
  }
}
