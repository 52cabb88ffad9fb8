package shop.skywalking;

import java.lang.reflect.Method;
import java.net.URI;
import java.util.HashMap;
import java.util.Map;
import org.apache.skywalking.apm.agent.core.context.ContextSnapshot;
import org.apache.skywalking.apm.agent.core.context.trace.AbstractSpan;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.EnhancedInstance;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.MethodInterceptResult;
import org.springframework.web.reactive.function.client.ClientRequest;
import org.springframework.web.reactive.function.client.ExchangeFunction;
import reactor.core.publisher.Mono;

/** Instead of {@code ExchangeFunction.exchange(ClientRequest)}, as {@link GatewayExit} does it. */
public final class WebClientExit extends Interceptor {
  private static final String WATCHED = "shop.skywalking.watched";

  @Override
  public void beforeMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      MethodInterceptResult result) {
    ClientRequest request = (ClientRequest) arguments[0];
    if (request.attribute(WATCHED).isPresent()) {
      return;
    }
    result.defineReturnValue(Mono.deferContextual(context -> {
      URI to = request.url();
      Map<String, String> headers = new HashMap<>();
      ContextSnapshot snapshot = context.getOrDefault(Spans.KEY, null);
      AbstractSpan span = Spans.exit(99, "spring-webclient", request.method().name(), to.getPath(), to.toString(),
          to.getAuthority(), snapshot, headers::put);
      ClientRequest marked = ClientRequest.from(request).attribute(WATCHED, true)
          .headers(it -> headers.forEach(it::set)).build();
      return ((ExchangeFunction) target).exchange(marked)
          .doOnNext(response -> Spans.status(span, response.statusCode().value())).doOnError(span::log)
          .doFinally(end -> span.asyncFinish());
    }));
  }
}
