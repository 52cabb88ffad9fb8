package tickets.event;

import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.stream.IntStream;
import tickets.common.Messages.Seat;

/** Which seats of an area are taken. */
final class SeatMap {
  private final int rows;
  private final int columns;
  /** Row after row. */
  private final BitSet taken;

  SeatMap(int rows, int columns, byte[] taken) {
    this.rows = rows;
    this.columns = columns;
    this.taken = BitSet.valueOf(taken);
  }

  byte[] taken() {
    return taken.toByteArray();
  }

  int free() {
    return rows * columns - taken.cardinality();
  }

  /** Row by row, the first free seats that are beside each other; none if there is no such row. */
  List<Seat> firstFit(int seats) {
    for (int row = 0; row < rows; row++) {
      int end = (row + 1) * columns;
      int from = taken.nextClearBit(row * columns);
      while (from + seats <= end) {
        int next = taken.nextSetBit(from);
        int until = next < 0 ? end : Math.min(next, end);
        if (until - from >= seats) {
          return seats(row, from - row * columns, seats);
        }
        from = taken.nextClearBit(until);
      }
    }
    return List.of();
  }

  private static List<Seat> seats(int row, int column, int seats) {
    return IntStream.range(column, column + seats).mapToObj(at -> new Seat(row, at)).toList();
  }

  /** Whether all of these are seats of the area, none of them twice. */
  boolean has(List<Seat> seats) {
    return new HashSet<>(seats).size() == seats.size() && seats.stream().allMatch(
        it -> it.row() >= 0 && it.row() < rows && it.column() >= 0 && it.column() < columns);
  }

  /** Takes all of these seats, which the area {@link #has}, or none: whether they were free. */
  boolean take(List<Seat> seats) {
    if (seats.stream().anyMatch(it -> taken.get(place(it)))) {
      return false;
    }
    seats.forEach(it -> taken.set(place(it)));
    return true;
  }

  private int place(Seat seat) {
    return seat.row() * columns + seat.column();
  }
}
