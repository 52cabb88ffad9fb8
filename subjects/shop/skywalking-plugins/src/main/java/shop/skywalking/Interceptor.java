package shop.skywalking;

import java.lang.reflect.Method;
import org.apache.skywalking.apm.agent.core.context.ContextManager;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.EnhancedInstance;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.InstanceMethodsAroundInterceptor;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.MethodInterceptResult;

/** Does nothing yet. */
abstract class Interceptor implements InstanceMethodsAroundInterceptor {
  @Override
  public void beforeMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      MethodInterceptResult result) throws Throwable {}

  @Override
  public Object afterMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      Object returned) throws Throwable {
    return returned;
  }

  @Override
  public void handleMethodException(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      Throwable thrown) {
    if (ContextManager.isActive()) {
      ContextManager.activeSpan().log(thrown);
    }
  }
}
