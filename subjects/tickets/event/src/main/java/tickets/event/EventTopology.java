package tickets.event;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import tickets.common.Json;
import tickets.common.Messages.Area;
import tickets.common.Messages.AreaCommand;
import tickets.common.Messages.AreaStatus;
import tickets.common.Messages.CreateEvent;
import tickets.common.Messages.CreateReservation;
import tickets.common.Messages.Open;
import tickets.common.Messages.Reasons;
import tickets.common.Messages.Reserve;
import tickets.common.Messages.Result;
import tickets.common.Topics;

/**
 * An event is split into its areas, and each area sells its own seats: {@code create-event} → {@code area-commands} →
 * {@code area-status} and {@code seat-results}.
 */
final class EventTopology {
  static final String STORE = "areas";
  private static final String COMMANDS = "to " + Topics.AREA_COMMANDS;
  private static final String STATUS = "to " + Topics.AREA_STATUS;
  private static final String RESULTS = "to " + Topics.SEAT_RESULTS;

  private EventTopology() {}

  static Topology build() {
    Serde<String> key = Serdes.String();
    Serde<CreateEvent> event = Json.serde(CreateEvent.class);
    Serde<AreaCommand> command = Json.serde(AreaCommand.class);
    return new Topology()
        .addSource("events", key.deserializer(), event.deserializer(), Topics.CREATE_EVENT)
        .addProcessor("open", OpenAreas::new, "events")
        .addSink(COMMANDS, Topics.AREA_COMMANDS, key.serializer(), command.serializer(), "open")
        .addSource("commands", key.deserializer(), command.deserializer(), Topics.AREA_COMMANDS)
        .addProcessor("sell", SellSeats::new, "commands")
        .addStateStore(Stores.keyValueStoreBuilder(
            Stores.persistentKeyValueStore(STORE), key, Json.serde(AreaState.class)), "sell")
        .addSink(STATUS, Topics.AREA_STATUS, key.serializer(), Json.serde(AreaStatus.class).serializer(), "sell")
        .addSink(RESULTS, Topics.SEAT_RESULTS, key.serializer(), Json.serde(Result.class).serializer(), "sell");
  }

  private static final class OpenAreas extends ContextualProcessor<String, CreateEvent, String, AreaCommand> {
    @Override
    public void process(Record<String, CreateEvent> created) {
      CreateEvent event = created.value();
      for (Area area : event.areas()) {
        context().forward(
            created.withKey(Topics.area(event.event(), area.id())).withValue(new Open(event.event(), area)));
      }
    }
  }

  private static final class SellSeats extends ContextualProcessor<String, AreaCommand, String, Object> {
    private KeyValueStore<String, AreaState> areas;

    @Override
    public void init(ProcessorContext<String, Object> context) {
      super.init(context);
      areas = context.getStateStore(STORE);
    }

    @Override
    public void process(Record<String, AreaCommand> told) {
      AreaState known = areas.get(told.key());
      if (told.value() instanceof Reserve reserve) {
        reserve(told, known, reserve.reservation());
      } else if (told.value() instanceof Open open && known == null) {
        // An event that is created again keeps what it has sold.
        keep(told, AreaState.open(open));
      }
    }

    private void reserve(Record<String, AreaCommand> told, AreaState known, CreateReservation wish) {
      Result result;
      if (known == null) {
        result = Result.failed(wish, Reasons.NO_SUCH_AREA);
      } else {
        AreaState.Step step = known.reserve(wish);
        if (step.area() != known) {
          keep(told, step.area());
        }
        result = step.result();
      }
      context().forward(told.withKey(wish.id()).withValue(result), RESULTS);
    }

    private void keep(Record<String, AreaCommand> told, AreaState area) {
      areas.put(told.key(), area);
      context().forward(told.withValue(area.status()), STATUS);
    }
  }
}
