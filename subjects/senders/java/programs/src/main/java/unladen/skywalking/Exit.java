package unladen.skywalking;

import java.lang.reflect.Method;
import java.net.HttpURLConnection;
import org.apache.skywalking.apm.agent.core.context.CarrierItem;
import org.apache.skywalking.apm.agent.core.context.ContextCarrier;
import org.apache.skywalking.apm.agent.core.context.ContextManager;
import org.apache.skywalking.apm.agent.core.context.trace.AbstractSpan;
import org.apache.skywalking.apm.agent.core.context.trace.SpanLayer;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.EnhancedInstance;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.InstanceMethodsAroundInterceptor;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.MethodInterceptResult;

/** Around a method that takes an {@link HttpURLConnection} and returns the status of its answer: an exit span. */
public final class Exit implements InstanceMethodsAroundInterceptor {
  @Override
  public void beforeMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      MethodInterceptResult result) {
    HttpURLConnection connection = (HttpURLConnection) arguments[0];
    ContextCarrier carrier = new ContextCarrier();
    AbstractSpan span = ContextManager.createExitSpan("calls prices", carrier, connection.getURL().getAuthority());
    span.setLayer(SpanLayer.HTTP);
    for (CarrierItem item = carrier.items(); item.hasNext();) {
      item = item.next();
      connection.setRequestProperty(item.getHeadKey(), item.getHeadValue());
    }
  }

  @Override
  public Object afterMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      Object status) {
    if ((Integer) status >= 400) {
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
