package shop.skywalking;

import java.lang.reflect.Method;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import org.apache.skywalking.apm.agent.core.context.ContextSnapshot;
import org.apache.skywalking.apm.agent.core.context.trace.AbstractSpan;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.EnhancedInstance;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.MethodInterceptResult;
import org.springframework.cloud.gateway.filter.GatewayFilterChain;
import org.springframework.cloud.gateway.filter.GlobalFilter;
import org.springframework.cloud.gateway.support.ServerWebExchangeUtils;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/**
 * Instead of {@code NettyRoutingFilter.filter(ServerWebExchange, GatewayFilterChain)}: the same once more, with a span around
 * it, when Reactor's context is known, which says whose request it is.
 */
public final class GatewayExit extends Interceptor {
  private static final String WATCHED = "shop.skywalking.watched";

  @Override
  public void beforeMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      MethodInterceptResult result) {
    ServerWebExchange exchange = (ServerWebExchange) arguments[0];
    if (exchange.getAttributes().putIfAbsent(WATCHED, true) != null) {
      return;
    }
    result.defineReturnValue(Mono.deferContextual(context -> {
      URI to = exchange.getRequiredAttribute(ServerWebExchangeUtils.GATEWAY_REQUEST_URL_ATTR);
      Map<String, String> headers = new HashMap<>();
      ContextSnapshot snapshot = context.getOrDefault(Spans.KEY, null);
      AbstractSpan span = Spans.exit(61, "spring-cloud-gateway", exchange.getRequest().getMethod().name(), to.getPath(),
          to.toString(), to.getAuthority(), snapshot, headers::put);
      ServerWebExchange marked =
          exchange.mutate().request(request -> request.headers(it -> headers.forEach(it::set))).build();
      return ((GlobalFilter) target).filter(marked, (GatewayFilterChain) arguments[1]).doOnError(span::log)
          .doFinally(end -> span.asyncFinish());
    }));
  }
}
