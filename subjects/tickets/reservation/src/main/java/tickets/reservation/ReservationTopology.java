package tickets.reservation;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import tickets.common.Json;
import tickets.common.Messages.AreaCommand;
import tickets.common.Messages.AreaStatus;
import tickets.common.Messages.CreateReservation;
import tickets.common.Messages.Reasons;
import tickets.common.Messages.Reserve;
import tickets.common.Messages.Result;
import tickets.common.Messages.State;
import tickets.common.Topics;

/**
 * A reservation is refused at once if its area is known to be too full; else the area is asked, and its answer is the last
 * word: {@code create-reservation} → {@code area-commands}, and {@code seat-results} → {@code reservation-results}.
 */
final class ReservationTopology {
  static final String STORE = "reservations";
  /** How full the areas are, a copy of all of them. It may lag behind, and seats are never given back: who finds too few is right. */
  static final String AREAS = "areas";
  private static final String COMMANDS = "to " + Topics.AREA_COMMANDS;
  private static final String RESULTS = "to " + Topics.RESERVATION_RESULTS;

  private ReservationTopology() {}

  static Topology build() {
    Serde<String> key = Serdes.String();
    Serde<Result> result = Json.serde(Result.class);
    Serde<AreaStatus> status = Json.serde(AreaStatus.class);
    return new Topology()
        .addGlobalStore(
            Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore(AREAS), key, status).withLoggingDisabled(),
            "status", key.deserializer(), status.deserializer(), Topics.AREA_STATUS, "copy", CopyAreas::new)
        .addSource("wishes", key.deserializer(), Json.serde(CreateReservation.class).deserializer(),
            Topics.CREATE_RESERVATION)
        .addProcessor("begin", Begin::new, "wishes")
        .addSource("answers", key.deserializer(), result.deserializer(), Topics.SEAT_RESULTS)
        .addProcessor("end", End::new, "answers")
        .addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), key, result), "begin", "end")
        .addSink(COMMANDS, Topics.AREA_COMMANDS, key.serializer(), Json.serde(AreaCommand.class).serializer(), "begin")
        .addSink(RESULTS, Topics.RESERVATION_RESULTS, key.serializer(), result.serializer(), "begin", "end");
  }

  private static final class CopyAreas implements Processor<String, AreaStatus, Void, Void> {
    private KeyValueStore<String, AreaStatus> areas;

    @Override
    public void init(ProcessorContext<Void, Void> context) {
      areas = context.getStateStore(AREAS);
    }

    @Override
    public void process(Record<String, AreaStatus> changed) {
      areas.put(changed.key(), changed.value());
    }
  }

  private static final class Begin extends ContextualProcessor<String, CreateReservation, String, Object> {
    private KeyValueStore<String, Result> reservations;
    private KeyValueStore<String, AreaStatus> areas;

    @Override
    public void init(ProcessorContext<String, Object> context) {
      super.init(context);
      reservations = context.getStateStore(STORE);
      areas = context.getStateStore(AREAS);
    }

    @Override
    public void process(Record<String, CreateReservation> wanted) {
      CreateReservation wish = wanted.value();
      if (reservations.get(wish.id()) != null) {
        return;
      }
      String key = Topics.area(wish.event(), wish.area());
      AreaStatus area = areas.get(key);
      if (area != null && area.free() < wish.seats()) {
        Result refused = Result.failed(wish, Reasons.SOLD_OUT);
        reservations.put(wish.id(), refused);
        context().forward(wanted.withValue(refused), RESULTS);
      } else {
        reservations.put(wish.id(), Result.processing(wish));
        context().forward(wanted.withKey(key).withValue(new Reserve(wish)), COMMANDS);
      }
    }
  }

  private static final class End extends ContextualProcessor<String, Result, String, Result> {
    private KeyValueStore<String, Result> reservations;

    @Override
    public void init(ProcessorContext<String, Result> context) {
      super.init(context);
      reservations = context.getStateStore(STORE);
    }

    @Override
    public void process(Record<String, Result> answered) {
      Result known = reservations.get(answered.key());
      if (known != null && known.state() != State.PROCESSING) {
        return;
      }
      reservations.put(answered.key(), answered.value());
      context().forward(answered);
    }
  }
}
