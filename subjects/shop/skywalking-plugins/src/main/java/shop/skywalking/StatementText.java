package shop.skywalking;

import java.lang.reflect.Method;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.EnhancedInstance;

/** After {@code Connection.prepareStatement(String, …)}: the statement remembers its text. */
public final class StatementText extends Interceptor {
  @Override
  public Object afterMethod(EnhancedInstance target, Method method, Object[] arguments, Class<?>[] types,
      Object returned) {
    if (returned instanceof EnhancedInstance statement) {
      statement.setSkyWalkingDynamicField(arguments[0]);
    }
    return returned;
  }
}
