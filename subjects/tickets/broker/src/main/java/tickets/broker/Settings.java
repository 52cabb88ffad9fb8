package tickets.broker;

import java.nio.file.Path;
import java.util.Properties;

/** How the broker is configured: one node that is broker and controller, on loopback, in a small heap. */
final class Settings {
  private static final String HOST = "127.0.0.1";

  private Settings() {}

  static Properties of(Path folder, int port, int controllerPort) {
    Properties properties = new Properties();
    properties.put("process.roles", "broker,controller");
    properties.put("node.id", "1");
    properties.put("controller.quorum.voters", "1@" + HOST + ":" + controllerPort);
    properties.put("controller.listener.names", "CONTROLLER");
    properties.put("listeners", "PLAINTEXT://" + HOST + ":" + port + ",CONTROLLER://" + HOST + ":" + controllerPort);
    properties.put("advertised.listeners", "PLAINTEXT://" + HOST + ":" + port);
    properties.put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
    properties.put("inter.broker.listener.name", "PLAINTEXT");
    properties.put("log.dirs", folder.resolve("data").toAbsolutePath().toString());

    // There is one broker, so there is one of everything.
    properties.put("default.replication.factor", "1");
    properties.put("offsets.topic.replication.factor", "1");
    properties.put("transaction.state.log.replication.factor", "1");
    properties.put("transaction.state.log.min.isr", "1");
    properties.put("share.coordinator.state.topic.replication.factor", "1");
    properties.put("share.coordinator.state.topic.min.isr", "1");
    properties.put("auto.create.topics.enable", "false");

    // Few partitions and threads: six clients ask.
    properties.put("offsets.topic.num.partitions", "4");
    properties.put("transaction.state.log.num.partitions", "4");
    properties.put("num.network.threads", "2");
    properties.put("num.io.threads", "4");
    properties.put("background.threads", "2");
    properties.put("log.cleaner.dedupe.buffer.size", "16777216");
    properties.put("log.index.size.max.bytes", "1048576");

    // A broker that was killed comes back when its session is over: sooner than after the usual 9 s.
    properties.put("broker.session.timeout.ms", "5000");
    properties.put("broker.heartbeat.interval.ms", "1000");

    // Instances of a service start within a second or so of each other: wait for the second, then give out the work once.
    properties.put("group.initial.rebalance.delay.ms", "1000");
    return properties;
  }
}
