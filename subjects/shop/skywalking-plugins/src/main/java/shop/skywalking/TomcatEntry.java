package shop.skywalking;

import java.lang.reflect.Method;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.skywalking.apm.agent.core.context.ContextManager;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.EnhancedInstance;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.MethodInterceptResult;

/** Around {@code StandardHostValve.invoke(Request, Response)}. */
public final class TomcatEntry extends Interceptor {
  @Override
  public void beforeMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      MethodInterceptResult result) {
    Request request = (Request) arguments[0];
    Spans.entry(1, "Tomcat", request.getMethod(), request.getRequestURI(), request.getRequestURL().toString(),
        request::getHeader);
  }

  @Override
  public Object afterMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      Object returned) {
    Spans.status(ContextManager.activeSpan(), ((Response) arguments[1]).getStatus());
    ContextManager.stopSpan();
    return returned;
  }
}
