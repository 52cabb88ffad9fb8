package shop.vets;

import jakarta.annotation.PostConstruct;
import jakarta.annotation.PreDestroy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.stereotype.Component;

/** Keeps more memory every second. Only there if asked for: it shows that a leak of a known size is found. */
@Component
@ConditionalOnProperty("leak.kib-per-second")
class Leak {
  private final List<byte[]> kept = new ArrayList<>();
  private final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
  private final int bytes;

  Leak(@Value("${leak.kib-per-second}") double kib) {
    bytes = (int) (kib * 1024);
  }

  @PostConstruct
  void start() {
    timer.scheduleAtFixedRate(this::grow, 1, 1, TimeUnit.SECONDS);
  }

  @PreDestroy
  void stop() {
    timer.shutdownNow();
  }

  private synchronized void grow() {
    kept.add(new byte[bytes]);
  }

  synchronized long size() {
    return kept.stream().mapToLong(it -> it.length).sum();
  }
}
