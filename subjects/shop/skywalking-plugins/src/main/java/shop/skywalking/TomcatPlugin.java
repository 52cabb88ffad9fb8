package shop.skywalking;

import java.util.Map;
import org.apache.skywalking.apm.dependencies.net.bytebuddy.matcher.ElementMatchers;

/** What comes in over Tomcat. */
public final class TomcatPlugin extends Plugin {
  public TomcatPlugin() {
    super("org.apache.catalina.core.StandardHostValve", Map.of("shop.skywalking.TomcatEntry",
        ElementMatchers.named("invoke")));
  }
}
