package tickets.common;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.junit.jupiter.api.Test;
import tickets.common.Messages.Area;
import tickets.common.Messages.AreaCommand;
import tickets.common.Messages.Choice;
import tickets.common.Messages.CreateReservation;
import tickets.common.Messages.Open;
import tickets.common.Messages.Reserve;
import tickets.common.Messages.Result;
import tickets.common.Messages.Seat;

class JsonTest {
  private static final CreateReservation WISH =
      new CreateReservation("1", "e", "a", "u", Choice.SELF_PICK, 1, List.of(new Seat(3, 4)));

  private static <T> T back(Serde<T> serde, T value) {
    return serde.deserializer().deserialize("t", serde.serializer().serialize("t", value));
  }

  @Test
  void commandsKeepTheirKind() {
    Serde<AreaCommand> serde = Json.serde(AreaCommand.class);
    Open open = new Open("e", new Area("a", 2, 3));
    assertEquals(open, assertInstanceOf(Open.class, back(serde, open)));
    assertEquals(new Reserve(WISH), back(serde, new Reserve(WISH)));
  }

  @Test
  void resultsAreTheSameAfterATripAndSayNothingOfWhatIsNotThere() {
    Serde<Result> serde = Json.serde(Result.class);
    for (Result result : List.of(Result.processing(WISH), Result.reserved(WISH, WISH.picked()),
        Result.failed(WISH, "sold out"))) {
      assertEquals(result, back(serde, result));
    }
    assertEquals("{\"id\":\"1\",\"event\":\"e\",\"area\":\"a\",\"state\":\"FAILED\",\"reason\":\"sold out\"}",
        Json.write(Result.failed(WISH, "sold out")));
  }

  @Test
  void nonsenseIsNamedWithItsTopic() {
    var reader = Json.serde(Result.class).deserializer();
    byte[] nonsense = "{\"id\": 5,".getBytes(StandardCharsets.UTF_8);
    SerializationException e = assertThrows(SerializationException.class, () -> reader.deserialize("area", nonsense));
    assertTrue(e.getMessage().contains("area") && e.getMessage().contains("Result"), e.getMessage());
  }
}
