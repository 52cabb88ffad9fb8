package tickets.broker;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The broker as a process of its own, as the study starts it. */
class BrokerTest {
  private static final int RECORDS = 500;

  @TempDir private Path folder;

  private static int freePort() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return socket.getLocalPort();
    }
  }

  /** Starts a broker, and waits until it says that it runs. */
  private Process start(int port, int controllerPort, String log) throws Exception {
    Path out = folder.resolve(log);
    Process process = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-Xmx256m",
        "-XX:TieredStopAtLevel=1", "-cp", System.getProperty("java.class.path"), "tickets.broker.Broker",
        "--port", "" + port, "--controller-port", "" + controllerPort, "--folder", folder.resolve("kafka").toString())
        .redirectErrorStream(true).redirectOutput(out.toFile()).start();
    while (!Files.readString(out).contains("broker is running")) {
      assertTrue(process.isAlive(), () -> read(out));
      Thread.sleep(50);
    }
    return process;
  }

  private static String read(Path file) {
    try {
      return Files.readString(file);
    } catch (IOException e) {
      return e.toString();
    }
  }

  @Test
  @Timeout(value = 120)
  void whatWasAcknowledgedIsThereAfterAKill() throws Exception {
    int port = freePort();
    int controllerPort = freePort();
    Process broker = start(port, controllerPort, "first.log");
    try {
      Map<String, Object> where = Map.of("bootstrap.servers", "127.0.0.1:" + port);
      try (Admin admin = Admin.create(where)) {
        admin.createTopics(List.of(new NewTopic("t", 1, (short) 1))).all().get(60, TimeUnit.SECONDS);
      }
      List<String> sent = new ArrayList<>();
      try (var producer = new KafkaProducer<>(where, new StringSerializer(), new StringSerializer())) {
        for (int i = 0; i < RECORDS; i++) {
          sent.add("record " + i);
          producer.send(new ProducerRecord<>("t", sent.get(i)));
          if (i == RECORDS / 2) {
            producer.flush();
            broker.destroyForcibly().waitFor();
            broker = start(port, controllerPort, "second.log");
          }
        }
        producer.flush();
      }
      List<String> found = new ArrayList<>();
      try (var consumer = new KafkaConsumer<>(where, new StringDeserializer(), new StringDeserializer())) {
        List<TopicPartition> all = List.of(new TopicPartition("t", 0));
        consumer.assign(all);
        consumer.seekToBeginning(all);
        while (found.size() < RECORDS) {
          for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofSeconds(1))) {
            found.add(record.value());
          }
        }
        assertTrue(consumer.poll(Duration.ofMillis(300)).isEmpty(), "nothing twice");
      }
      assertEquals(sent, found);
    } finally {
      broker.destroy();
      assertTrue(broker.waitFor(30, TimeUnit.SECONDS), "it ends when told to");
    }
  }
}
