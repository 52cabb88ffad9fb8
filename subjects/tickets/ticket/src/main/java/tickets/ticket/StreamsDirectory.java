package tickets.ticket;

import java.util.Optional;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyQueryMetadata;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.StreamsNotStartedException;
import org.apache.kafka.streams.state.HostInfo;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import tickets.common.Messages.Result;

/** As Kafka Streams knows it. */
final class StreamsDirectory implements Directory {
  private static final Serializer<String> KEYS = Serdes.String().serializer();

  private final KafkaStreams streams;
  private final HostInfo own;

  StreamsDirectory(KafkaStreams streams, HostInfo own) {
    this.streams = streams;
    this.own = own;
  }

  @Override
  public boolean isReady() {
    return streams.state() == KafkaStreams.State.RUNNING;
  }

  @Override
  public Optional<String> elsewhere(String id) throws NotNow {
    KeyQueryMetadata found;
    try {
      found = streams.queryMetadataForKey(ResultTopology.STORE, id, KEYS);
    } catch (IllegalStateException | StreamsNotStartedException e) {
      throw new NotNow("the streams do not run", e);
    }
    if (found == null || KeyQueryMetadata.NOT_AVAILABLE.equals(found)) {
      throw new NotNow("nobody has this part of the reservations yet", null);
    }
    HostInfo host = found.activeHost();
    return host.equals(own) ? Optional.empty() : Optional.of("http://" + host.host() + ":" + host.port());
  }

  @Override
  public Optional<Result> here(String id) throws NotNow {
    try {
      var store = streams.store(
          StoreQueryParameters.fromNameAndType(ResultTopology.STORE, QueryableStoreTypes.<String, Result>keyValueStore()));
      return Optional.ofNullable(store.get(id));
    } catch (InvalidStateStoreException | IllegalStateException e) {
      throw new NotNow("the store is moving", e);
    }
  }
}
