package tickets.check;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tickets.common.Messages.AreaStatus;
import tickets.common.Messages.Choice;
import tickets.common.Messages.CreateReservation;
import tickets.common.Messages.Result;
import tickets.common.Messages.Seat;
import tickets.common.Messages.State;

class BooksTest {
  private final Books books = new Books("e");

  @BeforeEach
  void goodBooks() {
    books.area(new AreaStatus("e", "a", 2, 3, 6));
    books.area(new AreaStatus("e", "a", 2, 3, 4));
    for (int i = 1; i <= 3; i++) {
      books.want(wish(i));
    }
    books.decide(reserved(1, new Seat(0, 0), new Seat(0, 1)));
    books.decide(failed(2, "sold out"));
    books.decide(failed(3, "seat taken"));
  }

  private static String id(int number) {
    return new UUID(0, number).toString();
  }

  private static CreateReservation wish(int number) {
    return new CreateReservation(id(number), "e", "a", "u", Choice.RANDOM, 2, List.of());
  }

  private static Result reserved(int number, Seat... seats) {
    return new Result(id(number), "e", "a", State.RESERVED, List.of(seats), null);
  }

  private static Result failed(int number, String reason) {
    return new Result(id(number), "e", "a", State.FAILED, List.of(), reason);
  }

  private void assertProblem(long accepted, long lost, String... words) {
    String all = String.join("\n", books.problems(accepted, lost));
    for (String word : words) {
      assertTrue(all.contains(word), () -> "no `" + word + "` in: " + all);
    }
  }

  @Test
  void goodBooksHaveNoProblems() {
    assertEquals(List.of(), books.problems(3, 0));
    assertEquals(Map.of("accepted", 3L, "reserved", 1L, "refused", 2L, "seats", 2L), books.numbers());
  }

  @Test
  void aSeatThatIsSoldTwiceIsNamed() {
    books.want(wish(4));
    books.decide(reserved(4, new Seat(0, 1)));
    assertProblem(4, 0, "row 0, seat 1 of area a of e was sold twice", id(4));
    assertEquals(1, books.problems(4, 0).size());
  }

  @Test
  void theSameSeatOfAnotherAreaIsAnother() {
    books.area(new AreaStatus("e", "b", 2, 3, 5));
    books.want(wish(4));
    books.decide(new Result(id(4), "e", "b", State.RESERVED, List.of(new Seat(0, 1)), null));
    assertEquals(List.of(), books.problems(4, 0));
  }

  @Test
  void whatIsMissingOrDoubledIsCounted() {
    books.want(wish(4));
    assertEquals(1, books.open());
    assertProblem(4, 0, "1 of 4 reservations have no result");
    assertProblem(5, 2, "5 reservations were accepted, but 4 were handed on", "2 messages were accepted and then not stored");
    books.decide(failed(4, "sold out"));
    books.decide(failed(4, "sold out"));
    books.decide(failed(5, "sold out"));
    books.want(wish(4));
    assertProblem(4, 0, id(4) + " has two results", "1 results are of reservations that nobody wanted",
        id(4) + " was handed on twice");
  }

  @Test
  void areasAndResultsMustAgree() {
    books.area(new AreaStatus("e", "a", 2, 3, 5));
    assertProblem(3, 0, "area e#a says that 5 seats are free, but 4 were not sold");
    books.want(wish(4));
    books.decide(reserved(4, new Seat(7, 0)));
    assertProblem(4, 0, "has sold a seat that it does not have");
    books.want(wish(5));
    books.decide(reserved(5));
    assertProblem(5, 0, id(5) + " has no seats");
  }

  @Test
  void otherEventsAreCheckedButNotCounted() {
    books.area(new AreaStatus("rehearsal", "a", 1, 1, 1));
    books.want(new CreateReservation(id(4), "rehearsal", "a", "u", Choice.RANDOM, 1, List.of()));
    books.decide(new Result(id(4), "rehearsal", "a", State.RESERVED, List.of(new Seat(0, 0)), null));
    assertProblem(4, 0, "area rehearsal#a says that 1 seats are free");
    assertEquals(3, books.numbers().get("accepted"));
    assertEquals(2, books.numbers().get("seats"));
  }

  @Test
  void aThousandProblemsAreNotAllTold() {
    for (int i = 0; i < 1_000; i++) {
      books.decide(failed(2, "sold out"));
    }
    List<String> problems = books.problems(3, 0);
    assertEquals(11, problems.size());
    assertEquals("and 990 more of this kind", problems.get(10));
  }
}
