package shop.skywalking;

import java.util.Map;
import org.apache.skywalking.apm.dependencies.net.bytebuddy.matcher.ElementMatchers;

/** Prepared statements, when they are executed: of any driver, because the pool stands before it. */
public final class StatementPlugin extends Plugin {
  public StatementPlugin() {
    super("com.zaxxer.hikari.pool.HikariProxyPreparedStatement", Map.of("shop.skywalking.StatementExit",
        ElementMatchers.namedOneOf("execute", "executeQuery", "executeUpdate").and(ElementMatchers.takesArguments(0))));
  }
}
