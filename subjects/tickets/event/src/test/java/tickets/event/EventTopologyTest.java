package tickets.event;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import tickets.common.Json;
import tickets.common.Messages.Area;
import tickets.common.Messages.AreaCommand;
import tickets.common.Messages.AreaStatus;
import tickets.common.Messages.Choice;
import tickets.common.Messages.CreateEvent;
import tickets.common.Messages.CreateReservation;
import tickets.common.Messages.Reasons;
import tickets.common.Messages.Reserve;
import tickets.common.Messages.Result;
import tickets.common.Messages.Seat;
import tickets.common.Messages.State;
import tickets.common.Topics;

class EventTopologyTest {
  private TopologyTestDriver driver;
  private TestInputTopic<String, CreateEvent> events;
  private TestInputTopic<String, AreaCommand> commands;
  private TestOutputTopic<String, AreaStatus> status;
  private TestOutputTopic<String, Result> results;
  private int wishes;

  @BeforeEach
  void start() {
    driver = new TopologyTestDriver(EventTopology.build(), new Properties());
    var text = Serdes.String();
    events = driver.createInputTopic(
        Topics.CREATE_EVENT, text.serializer(), Json.serde(CreateEvent.class).serializer());
    commands = driver.createInputTopic(
        Topics.AREA_COMMANDS, text.serializer(), Json.serde(AreaCommand.class).serializer());
    status = driver.createOutputTopic(
        Topics.AREA_STATUS, text.deserializer(), Json.serde(AreaStatus.class).deserializer());
    results = driver.createOutputTopic(
        Topics.SEAT_RESULTS, text.deserializer(), Json.serde(Result.class).deserializer());
  }

  @AfterEach
  void stop() {
    driver.close();
  }

  private void open(Area... areas) {
    events.pipeInput("e", new CreateEvent("e", "somebody", List.of(areas)));
  }

  private Result random(String area, int seats) {
    return reserve(area, Choice.RANDOM, seats, List.of());
  }

  private Result pick(Seat... seats) {
    return reserve("a", Choice.SELF_PICK, seats.length, List.of(seats));
  }

  private Result reserve(String area, Choice choice, int seats, List<Seat> picked) {
    String id = "r" + wishes++;
    var wish = new CreateReservation(id, "e", area, "user", choice, seats, picked);
    commands.pipeInput(Topics.area("e", area), new Reserve(wish));
    KeyValue<String, Result> answer = results.readKeyValue();
    assertEquals(id, answer.key);
    assertEquals(id, answer.value.id());
    assertTrue(results.isEmpty(), "one answer");
    return answer.value;
  }

  private static void assertFails(String reason, Result result) {
    assertEquals(State.FAILED, result.state());
    assertEquals(reason, result.reason());
    assertEquals(List.of(), result.seats());
  }

  @Test
  void anEventOpensItsAreas() {
    open(new Area("a", 2, 3), new Area("b", 20, 20));
    assertEquals(List.of(new KeyValue<>("e#a", new AreaStatus("e", "a", 2, 3, 6)),
        new KeyValue<>("e#b", new AreaStatus("e", "b", 20, 20, 400))), status.readKeyValuesToList());
  }

  @Test
  void aSecondCreationTakesNothingBack() {
    open(new Area("a", 1, 2));
    assertEquals(State.RESERVED, random("a", 2).state());
    open(new Area("a", 1, 2));
    assertFails(Reasons.SOLD_OUT, random("a", 1));
    assertEquals(List.of(2, 0), status.readValuesToList().stream().map(AreaStatus::free).toList());
  }

  @Test
  void aHallIsSoldOutWithNoSeatSoldTwice() {
    open(new Area("a", 20, 20));
    Set<Seat> sold = new HashSet<>();
    int seats = 0;
    int refused = 0;
    for (int i = 0; i < 400; i++) {
      Result result = random("a", 1 + i % 4);
      if (result.state() == State.RESERVED) {
        assertEquals(1 + i % 4, result.seats().size());
        result.seats().forEach(seat -> assertTrue(sold.add(seat), "sold twice: " + seat));
        seats += result.seats().size();
      } else {
        refused++;
      }
    }
    assertEquals(400, seats);
    assertEquals(400, sold.size());
    assertTrue(refused > 200, "1,000 seats were wanted");
    List<AreaStatus> all = status.readValuesToList();
    assertEquals(0, all.get(all.size() - 1).free());
  }

  @Test
  void areasSellSeatsOfTheirOwn() {
    open(new Area("a", 1, 1), new Area("b", 1, 1));
    assertEquals(State.RESERVED, random("a", 1).state());
    assertEquals(State.RESERVED, random("b", 1).state());
    assertFails(Reasons.SOLD_OUT, random("a", 1));
  }

  @Test
  void seatsThatAreFreeButApartAreNotEnough() {
    open(new Area("a", 2, 3));
    pick(new Seat(0, 1), new Seat(1, 1));
    assertFails(Reasons.NOT_TOGETHER, random("a", 2));
    assertEquals(List.of(new Seat(0, 0)), random("a", 1).seats());
  }

  @Test
  void chosenSeatsAreTakenTogetherOrNotAtAll() {
    open(new Area("a", 2, 3));
    assertEquals(List.of(new Seat(0, 0), new Seat(1, 2)), pick(new Seat(0, 0), new Seat(1, 2)).seats());
    assertFails(Reasons.TAKEN, pick(new Seat(1, 1), new Seat(1, 2)));
    assertEquals(State.RESERVED, pick(new Seat(1, 1)).state(), "the other one was left free");
    assertFails(Reasons.NO_SUCH_SEAT, pick(new Seat(2, 0)));
    assertFails(Reasons.NO_SUCH_SEAT, pick(new Seat(0, 1), new Seat(0, 1)));
    assertFails(Reasons.TAKEN, pick(new Seat(0, 0)));
  }

  @Test
  void anAreaThatIsNotThereSellsNothing() {
    open(new Area("a", 1, 1));
    assertFails(Reasons.NO_SUCH_AREA, random("z", 1));
  }
}
