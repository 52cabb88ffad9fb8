package shop.skywalking;

import java.util.Map;
import org.apache.skywalking.apm.dependencies.net.bytebuddy.matcher.ElementMatchers;

/** What the gateway passes on. */
public final class GatewayPlugin extends Plugin {
  public GatewayPlugin() {
    super("org.springframework.cloud.gateway.filter.NettyRoutingFilter", Map.of("shop.skywalking.GatewayExit",
        ElementMatchers.named("filter")));
  }
}
