package tickets.reservation;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tickets.common.Json;
import tickets.common.Messages.AreaCommand;
import tickets.common.Messages.AreaStatus;
import tickets.common.Messages.Choice;
import tickets.common.Messages.CreateReservation;
import tickets.common.Messages.Reasons;
import tickets.common.Messages.Reserve;
import tickets.common.Messages.Result;
import tickets.common.Messages.Seat;
import tickets.common.Messages.State;
import tickets.common.Topics;

class ReservationTopologyTest {
  private TopologyTestDriver driver;
  private TestInputTopic<String, CreateReservation> wishes;
  private TestInputTopic<String, Result> answers;
  private TestInputTopic<String, AreaStatus> status;
  private TestOutputTopic<String, AreaCommand> commands;
  private TestOutputTopic<String, Result> results;

  @BeforeEach
  void start() {
    driver = new TopologyTestDriver(ReservationTopology.build(), new Properties());
    var text = Serdes.String();
    wishes = driver.createInputTopic(
        Topics.CREATE_RESERVATION, text.serializer(), Json.serde(CreateReservation.class).serializer());
    answers = driver.createInputTopic(Topics.SEAT_RESULTS, text.serializer(), Json.serde(Result.class).serializer());
    status = driver.createInputTopic(Topics.AREA_STATUS, text.serializer(), Json.serde(AreaStatus.class).serializer());
    commands = driver.createOutputTopic(
        Topics.AREA_COMMANDS, text.deserializer(), Json.serde(AreaCommand.class).deserializer());
    results = driver.createOutputTopic(
        Topics.RESERVATION_RESULTS, text.deserializer(), Json.serde(Result.class).deserializer());
  }

  @AfterEach
  void stop() {
    driver.close();
  }

  private CreateReservation want(String id, int seats) {
    var wish = new CreateReservation(id, "e", "a", "user", Choice.RANDOM, seats, List.of());
    wishes.pipeInput(id, wish);
    return wish;
  }

  private Result known(String id) {
    KeyValueStore<String, Result> store = driver.getKeyValueStore(ReservationTopology.STORE);
    return store.get(id);
  }

  private void free(int seats) {
    status.pipeInput("e#a", new AreaStatus("e", "a", 20, 20, seats));
  }

  @Test
  void theAreaIsAskedAndItsAnswerIsTheLastWord() {
    CreateReservation wish = want("1", 2);
    assertEquals(new KeyValue<>("e#a", new Reserve(wish)), commands.readKeyValue());
    assertTrue(results.isEmpty());
    assertEquals(State.PROCESSING, known("1").state());

    Result reserved = Result.reserved(wish, List.of(new Seat(0, 0), new Seat(0, 1)));
    answers.pipeInput("1", reserved);
    assertEquals(new KeyValue<>("1", reserved), results.readKeyValue());
    assertEquals(reserved, known("1"));
  }

  @Test
  void anAreaThatIsTooFullIsNotAsked() {
    free(1);
    CreateReservation wish = want("1", 2);
    assertTrue(commands.isEmpty());
    assertEquals(new KeyValue<>("1", Result.failed(wish, Reasons.SOLD_OUT)), results.readKeyValue());
    assertEquals(State.FAILED, known("1").state());

    want("2", 1);
    assertEquals(1, commands.readValuesToList().size(), "one seat is left");
    free(0);
    want("3", 1);
    assertTrue(commands.isEmpty());
    assertEquals(Reasons.SOLD_OUT, results.readValue().reason());
  }

  @Test
  void nobodyIsAskedOrAnsweredTwice() {
    CreateReservation wish = want("1", 1);
    want("1", 1);
    assertEquals(1, commands.readValuesToList().size());
    Result first = Result.reserved(wish, List.of(new Seat(0, 0)));
    answers.pipeInput("1", first);
    answers.pipeInput("1", Result.reserved(wish, List.of(new Seat(0, 1))));
    assertEquals(List.of(first), results.readValuesToList());
    want("1", 1);
    assertTrue(commands.isEmpty() && results.isEmpty());
    assertEquals(first, known("1"));
  }
}
