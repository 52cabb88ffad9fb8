package tickets.check;

import java.io.IOException;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import tickets.common.Messages.AreaStatus;
import tickets.common.Messages.CreateEvent;
import tickets.common.Topics;

/** Before a load: every instance has its share of the work, and the event is there. */
@Command(name = "setup", mixinStandardHelpOptions = true,
    description = "Waits until every instance has its share of the work; rehearses; creates the event, and waits until it is "
        + "there.")
final class Setup implements Callable<Integer> {
  private static final List<String> SERVICES = List.of("ticket", "reservation", "event");
  private static final long PAUSE_MS = 100;

  @Mixin private Shop shop;
  @Mixin private Where where;
  @Mixin private Rehearsal rehearsal;

  @Option(names = "--instances", split = ",", paramLabel = "SERVICE=N",
      description = "Instances of a service, if there are not as many as ticket services: event=1,reservation=1")
  private Map<String, Integer> instances = new HashMap<>();

  @Option(names = "--event", defaultValue = "concert", description = "Name of the event (default: ${DEFAULT-VALUE}).")
  private String event;

  @Option(names = "--areas", defaultValue = "80", description = "Its areas (default: ${DEFAULT-VALUE}).")
  private int areas;

  @Option(names = "--rows", defaultValue = "20", description = "Rows of an area (default: ${DEFAULT-VALUE}).")
  private int rows;

  @Option(names = "--columns", defaultValue = "20", description = "Seats of a row (default: ${DEFAULT-VALUE}).")
  private int columns;

  @Override
  public Integer call() throws Exception {
    Deadline deadline = where.deadline();
    awaitShares(deadline);
    if (rehearsal.isWanted()) {
      open(rehearsal.event(), deadline);
      rehearsal.run(shop, areas);
    }
    open(event, deadline);
    System.out.printf("the event is there: %d areas of %d seats%n", areas, rows * columns);
    return 0;
  }

  private void open(String name, Deadline deadline) throws IOException, InterruptedException {
    CreateEvent wanted = Shop.event(name, areas, rows, columns);
    shop.create(wanted);
    Set<String> open = new HashSet<>();
    try (Topic<AreaStatus> status = new Topic<>(where.bootstrap(), Topics.AREA_STATUS, AreaStatus.class,
        it -> open.add(Topics.area(it.event(), it.area())))) {
      while (!wanted.areas().stream().allMatch(it -> open.contains(Topics.area(name, it.id())))) {
        deadline.pause(PAUSE_MS,
            () -> "not all of the " + areas + " areas of " + name + " are open; look into the event services' logs");
        status.readOn();
      }
    }
  }

  /** Streams are given to whoever is there first; what is measured must not depend on who that was. */
  private void awaitShares(Deadline deadline) throws InterruptedException, ExecutionException {
    try (Admin admin = Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, where.bootstrap()))) {
      for (String service : SERVICES) {
        int wanted = instances.getOrDefault(service, shop.instances());
        while (!isShared(admin.describeConsumerGroups(List.of(service)).describedGroups().get(service), wanted)) {
          deadline.pause(PAUSE_MS,
              () -> "the " + service + " services do not share their work among " + wanted + "; do all run?");
        }
      }
    }
  }

  private static boolean isShared(KafkaFuture<ConsumerGroupDescription> asked, int wanted)
      throws InterruptedException, ExecutionException {
    ConsumerGroupDescription group;
    try {
      group = asked.get();
    } catch (ExecutionException e) {
      if (e.getCause() instanceof GroupIdNotFoundException) {
        return false;
      }
      throw e;
    }
    return group.groupState() == GroupState.STABLE && group.members().size() == wanted
        && group.members().stream().noneMatch(it -> it.assignment().topicPartitions().isEmpty());
  }
}
