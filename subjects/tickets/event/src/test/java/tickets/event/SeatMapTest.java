package tickets.event;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import tickets.common.Messages.Seat;

class SeatMapTest {
  private static final byte[] EMPTY = new byte[0];

  private static List<Seat> row(int row, int... columns) {
    List<Seat> seats = new ArrayList<>();
    for (int column : columns) {
      seats.add(new Seat(row, column));
    }
    return seats;
  }

  @Test
  void theFirstRowThatFitsIsTaken() {
    SeatMap map = new SeatMap(2, 5, EMPTY);
    assertTrue(map.take(row(0, 1, 4)));
    assertEquals(row(0, 0), map.firstFit(1));
    assertEquals(row(0, 2, 3), map.firstFit(2));
    assertEquals(row(1, 0, 1, 2), map.firstFit(3));
    assertEquals(row(1, 0, 1, 2, 3, 4), map.firstFit(5));
    assertEquals(8, map.free());
  }

  @Test
  void aRunDoesNotGoOnInTheNextRow() {
    SeatMap map = new SeatMap(2, 3, EMPTY);
    assertTrue(map.take(row(0, 0)) && map.take(row(1, 2)));
    assertEquals(4, map.free());
    assertEquals(List.of(), map.firstFit(3));
    assertEquals(List.of(), new SeatMap(3, 3, EMPTY).firstFit(4));
  }

  @Test
  void seatsAreTakenAllOrNone() {
    SeatMap map = new SeatMap(1, 4, EMPTY);
    assertTrue(map.take(row(0, 1, 2)));
    assertFalse(map.take(row(0, 0, 1)));
    assertEquals(2, map.free());
    assertTrue(map.take(row(0, 0, 3)));
    assertEquals(0, map.free());
    assertEquals(List.of(), map.firstFit(1));
  }

  @Test
  void onlySeatsOfTheAreaCanBeChosen() {
    SeatMap map = new SeatMap(2, 3, EMPTY);
    assertTrue(map.has(row(1, 0, 2)));
    for (List<Seat> none : List.of(row(2, 0), row(0, 3), row(-1, 0), row(0, -1), row(0, 1, 1))) {
      assertFalse(map.has(none), none::toString);
    }
  }

  @Test
  void whatIsStoredIsWhatIsReadAgain() {
    SeatMap map = new SeatMap(20, 20, EMPTY);
    assertTrue(map.take(row(19, 19)) && map.take(row(0, 0)));
    SeatMap again = new SeatMap(20, 20, map.taken());
    assertEquals(398, again.free());
    assertFalse(again.take(row(19, 19)));
  }

  /** Against a search that is too plain to be wrong. */
  @Test
  void thousandsOfHallsAreFilledAsAPlainSearchFillsThem() {
    Random random = new Random(20_261_122);
    for (int hall = 0; hall < 2_000; hall++) {
      int rows = 1 + random.nextInt(6);
      int columns = 1 + random.nextInt(9);
      boolean[][] plain = new boolean[rows][columns];
      SeatMap map = new SeatMap(rows, columns, EMPTY);
      int failures = 0;
      while (failures < 6) {
        int seats = 1 + random.nextInt(4);
        List<Seat> expected = first(plain, seats);
        assertEquals(expected, map.firstFit(seats));
        failures += expected.isEmpty() ? 1 : 0;
        assertTrue(map.take(expected));
        for (Seat seat : expected) {
          assertFalse(plain[seat.row()][seat.column()], "sold twice");
          plain[seat.row()][seat.column()] = true;
        }
        map = new SeatMap(rows, columns, map.taken());
      }
    }
  }

  private static List<Seat> first(boolean[][] hall, int seats) {
    for (int row = 0; row < hall.length; row++) {
      for (int column = 0; column + seats <= hall[row].length; column++) {
        boolean free = true;
        List<Seat> found = new ArrayList<>();
        for (int at = column; at < column + seats; at++) {
          free &= !hall[row][at];
          found.add(new Seat(row, at));
        }
        if (free) {
          return found;
        }
      }
    }
    return List.of();
  }
}
