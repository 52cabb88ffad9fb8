package tickets.ticket;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.state.KeyValueStore;
import org.junit.jupiter.api.Test;
import tickets.common.Json;
import tickets.common.Messages.Result;
import tickets.common.Messages.State;
import tickets.common.Topics;

class ResultTopologyTest {
  @Test
  void aResultIsKeptAndThenTold() {
    List<Result> told = new ArrayList<>();
    List<KeyValueStore<String, Result>> store = new ArrayList<>();
    try (TopologyTestDriver driver = new TopologyTestDriver(ResultTopology.build(result -> {
      assertEquals(result, store.get(0).get(result.id()), "who is told finds it");
      told.add(result);
    }), new Properties())) {
      store.add(driver.getKeyValueStore(ResultTopology.STORE));
      var topic = driver.createInputTopic(
          Topics.RESERVATION_RESULTS, Serdes.String().serializer(), Json.serde(Result.class).serializer());
      Result result = new Result("1", "e", "a", State.FAILED, List.of(), "sold out");
      topic.pipeInput("1", result);
      assertEquals(List.of(result), told);
    }
  }
}
