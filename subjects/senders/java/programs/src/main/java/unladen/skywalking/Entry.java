package unladen.skywalking;

import com.sun.net.httpserver.HttpExchange;
import java.lang.reflect.Method;
import org.apache.skywalking.apm.agent.core.context.CarrierItem;
import org.apache.skywalking.apm.agent.core.context.ContextCarrier;
import org.apache.skywalking.apm.agent.core.context.ContextManager;
import org.apache.skywalking.apm.agent.core.context.tag.Tags;
import org.apache.skywalking.apm.agent.core.context.trace.AbstractSpan;
import org.apache.skywalking.apm.agent.core.context.trace.SpanLayer;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.EnhancedInstance;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.InstanceMethodsAroundInterceptor;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.MethodInterceptResult;

/** Around a method that takes an {@link HttpExchange} and returns the status of the answer: an entry span. */
public final class Entry implements InstanceMethodsAroundInterceptor {
  @Override
  public void beforeMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      MethodInterceptResult result) {
    HttpExchange exchange = (HttpExchange) arguments[0];
    ContextCarrier carrier = new ContextCarrier();
    for (CarrierItem item = carrier.items(); item.hasNext();) {
      item = item.next();
      item.setHeadValue(exchange.getRequestHeaders().getFirst(item.getHeadKey()));
    }
    String operation = exchange.getRequestMethod() + ":" + exchange.getRequestURI().getPath();
    AbstractSpan span = ContextManager.createEntrySpan(operation, carrier);
    span.setLayer(SpanLayer.HTTP);
    String number = exchange.getRequestURI().getQuery().substring("number=".length());
    span.tag(Tags.ofKey("number"), number);
    span.tag(Tags.ofKey("text"), "größe 🐾 " + number);
  }

  @Override
  public Object afterMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      Object status) {
    if ((Integer) status >= 500) {
      ContextManager.activeSpan().errorOccurred();
    }
    ContextManager.stopSpan();
    return status;
  }

  @Override
  public void handleMethodException(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      Throwable thrown) {
    ContextManager.activeSpan().log(thrown);
  }
}
