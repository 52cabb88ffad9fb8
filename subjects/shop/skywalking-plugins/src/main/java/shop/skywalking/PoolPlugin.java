package shop.skywalking;

import java.util.Map;
import org.apache.skywalking.apm.dependencies.net.bytebuddy.matcher.ElementMatchers;

/** Statements, when they are prepared on a connection of the pool. */
public final class PoolPlugin extends Plugin {
  public PoolPlugin() {
    super("com.zaxxer.hikari.pool.HikariProxyConnection", Map.of("shop.skywalking.StatementText",
        ElementMatchers.named("prepareStatement")));
  }
}
