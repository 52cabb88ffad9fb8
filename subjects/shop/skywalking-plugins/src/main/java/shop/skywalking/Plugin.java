package shop.skywalking;

import java.util.Map;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.ConstructorInterceptPoint;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.InstanceMethodsInterceptPoint;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.ClassInstanceMethodsEnhancePluginDefine;
import org.apache.skywalking.apm.agent.core.plugin.match.ClassMatch;
import org.apache.skywalking.apm.agent.core.plugin.match.NameMatch;
import org.apache.skywalking.apm.dependencies.net.bytebuddy.description.method.MethodDescription;
import org.apache.skywalking.apm.dependencies.net.bytebuddy.matcher.ElementMatcher;

/** Watches methods of one class: which ones, and by which interceptor, by name because that is loaded beside the class. */
abstract class Plugin extends ClassInstanceMethodsEnhancePluginDefine {
  private final String watched;
  private final Map<String, ElementMatcher<MethodDescription>> methods;

  Plugin(String watched, Map<String, ElementMatcher<MethodDescription>> methods) {
    this.watched = watched;
    this.methods = methods;
  }

  @Override
  protected ClassMatch enhanceClass() {
    return NameMatch.byName(watched);
  }

  @Override
  public ConstructorInterceptPoint[] getConstructorsInterceptPoints() {
    return new ConstructorInterceptPoint[0];
  }

  @Override
  public InstanceMethodsInterceptPoint[] getInstanceMethodsInterceptPoints() {
    return methods.entrySet().stream().map(it -> point(it.getValue(), it.getKey()))
        .toArray(InstanceMethodsInterceptPoint[]::new);
  }

  private static InstanceMethodsInterceptPoint point(ElementMatcher<MethodDescription> methods, String interceptor) {
    return new InstanceMethodsInterceptPoint() {
      @Override
      public ElementMatcher<MethodDescription> getMethodsMatcher() {
        return methods;
      }

      @Override
      public String getMethodsInterceptor() {
        return interceptor;
      }

      @Override
      public boolean isOverrideArgs() {
        return false;
      }
    };
  }
}
