package tickets.common;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.errors.TopicExistsException;

/** The topics between the services, and their keys. */
public final class Topics {
  /** Key: event. Value: {@link Messages.CreateEvent}. */
  public static final String CREATE_EVENT = "create-event";

  /** Key: reservation. Value: {@link Messages.CreateReservation}. */
  public static final String CREATE_RESERVATION = "create-reservation";

  /** Key: event#area. Value: {@link Messages.AreaCommand}. */
  public static final String AREA_COMMANDS = "area-commands";

  /** Key: reservation. Value: {@link Messages.Result}, as the event service decides it. */
  public static final String SEAT_RESULTS = "seat-results";

  /** Key: event#area. Value: {@link Messages.AreaStatus}. */
  public static final String AREA_STATUS = "area-status";

  /** Key: reservation. Value: {@link Messages.Result}, one for each reservation: the last word. */
  public static final String RESERVATION_RESULTS = "reservation-results";

  private static final List<String> ALL =
      List.of(CREATE_EVENT, CREATE_RESERVATION, AREA_COMMANDS, SEAT_RESULTS, AREA_STATUS, RESERVATION_RESULTS);
  private static final int SECONDS = 60;

  private Topics() {}

  /** The key of an area. */
  public static String area(String event, String area) {
    return event + "#" + area;
  }

  /**
   * Creates what is not there yet; every service does so as it starts, so none has to start first.
   *
   * @throws IllegalStateException if no broker answers within a minute
   */
  public static void create(String bootstrap, int partitions) {
    // Nothing is thrown away: whoever checks the books must see a result that was written twice.
    Map<String, String> kept = Map.of(TopicConfig.CLEANUP_POLICY_CONFIG, TopicConfig.CLEANUP_POLICY_DELETE,
        TopicConfig.RETENTION_MS_CONFIG, "-1", TopicConfig.RETENTION_BYTES_CONFIG, "-1");
    List<NewTopic> topics = ALL.stream().map(name -> new NewTopic(name, partitions, (short) 1).configs(kept)).toList();
    try (Admin admin = Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap))) {
      for (var created : admin.createTopics(topics).values().entrySet()) {
        try {
          created.getValue().get(SECONDS, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
          if (!(e.getCause() instanceof TopicExistsException)) {
            throw new IllegalStateException("cannot create the topic " + created.getKey() + " at " + bootstrap
                + ": " + e.getCause().getMessage() + "; is that the broker's --port?", e.getCause());
          }
        }
      }
    } catch (TimeoutException e) {
      throw new IllegalStateException("no broker at " + bootstrap + " for " + SECONDS + " s; start it first", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted while creating the topics", e);
    }
  }
}
