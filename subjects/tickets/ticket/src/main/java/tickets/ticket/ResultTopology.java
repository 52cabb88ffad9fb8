package tickets.ticket;

import java.util.function.Consumer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import tickets.common.Json;
import tickets.common.Messages.Result;
import tickets.common.Topics;

/** Keeps the results of this instance's part of the reservations, and tells of each that is new. */
final class ResultTopology {
  static final String STORE = "results";

  private ResultTopology() {}

  static Topology build(Consumer<Result> told) {
    Serde<String> key = Serdes.String();
    Serde<Result> result = Json.serde(Result.class);
    // The topic is the store's own changelog: nothing is written twice.
    return new Topology().addReadOnlyStateStore(
        Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore(STORE), key, result), "results",
        key.deserializer(), result.deserializer(), Topics.RESERVATION_RESULTS, "keep", () -> new Keep(told));
  }

  private static final class Keep implements Processor<String, Result, Void, Void> {
    private final Consumer<Result> told;
    private KeyValueStore<String, Result> results;

    Keep(Consumer<Result> told) {
      this.told = told;
    }

    @Override
    public void init(ProcessorContext<Void, Void> context) {
      results = context.getStateStore(STORE);
    }

    @Override
    public void process(Record<String, Result> decided) {
      // In this order: who asks in between finds it in the store.
      results.put(decided.key(), decided.value());
      told.accept(decided.value());
    }
  }
}
