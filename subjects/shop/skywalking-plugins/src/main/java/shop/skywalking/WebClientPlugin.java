package shop.skywalking;

import java.util.Map;
import org.apache.skywalking.apm.dependencies.net.bytebuddy.matcher.ElementMatchers;

/** What WebFlux's client asks. */
public final class WebClientPlugin extends Plugin {
  public WebClientPlugin() {
    super("org.springframework.web.reactive.function.client.ExchangeFunctions$DefaultExchangeFunction", Map.of("shop.skywalking.WebClientExit",
        ElementMatchers.named("exchange")));
  }
}
