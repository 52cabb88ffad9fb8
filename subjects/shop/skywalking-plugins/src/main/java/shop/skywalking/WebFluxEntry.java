package shop.skywalking;

import java.lang.reflect.Method;
import org.apache.skywalking.apm.agent.core.context.ContextManager;
import org.apache.skywalking.apm.agent.core.context.ContextSnapshot;
import org.apache.skywalking.apm.agent.core.context.trace.AbstractSpan;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.EnhancedInstance;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.MethodInterceptResult;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpResponse;
import reactor.core.publisher.Mono;

/** Around {@code HttpWebHandlerAdapter.handle(ServerHttpRequest, ServerHttpResponse)}, until what it returns has ended. */
public final class WebFluxEntry extends Interceptor {
  @Override
  public void beforeMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      MethodInterceptResult result) {
    ServerHttpRequest request = (ServerHttpRequest) arguments[0];
    Spans.entry(67, "spring-webflux", request.getMethod().name(), request.getPath().value(), request.getURI().toString(),
        request.getHeaders()::getFirst);
  }

  @Override
  public Object afterMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      Object returned) {
    AbstractSpan span = ContextManager.activeSpan();
    ContextSnapshot snapshot = ContextManager.capture();
    span.prepareForAsync();
    ContextManager.stopSpan(span);
    ServerHttpResponse response = (ServerHttpResponse) arguments[1];
    return ((Mono<?>) returned).contextWrite(context -> context.put(Spans.KEY, snapshot)).doFinally(end -> {
      HttpStatusCode status = response.getStatusCode();
      Spans.status(span, status == null ? 200 : status.value());
      span.asyncFinish();
    });
  }
}
