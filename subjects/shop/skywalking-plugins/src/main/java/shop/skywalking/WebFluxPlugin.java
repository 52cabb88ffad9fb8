package shop.skywalking;

import java.util.Map;
import org.apache.skywalking.apm.dependencies.net.bytebuddy.matcher.ElementMatchers;

/** What comes in over WebFlux. */
public final class WebFluxPlugin extends Plugin {
  public WebFluxPlugin() {
    super("org.springframework.web.server.adapter.HttpWebHandlerAdapter", Map.of("shop.skywalking.WebFluxEntry",
        ElementMatchers.named("handle").and(ElementMatchers.takesArguments(2))));
  }
}
