package unladen.skywalking;

import org.apache.skywalking.apm.agent.core.plugin.interceptor.ConstructorInterceptPoint;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.InstanceMethodsInterceptPoint;
import org.apache.skywalking.apm.agent.core.plugin.interceptor.enhance.ClassInstanceMethodsEnhancePluginDefine;
import org.apache.skywalking.apm.agent.core.plugin.match.ClassMatch;
import org.apache.skywalking.apm.agent.core.plugin.match.NameMatch;
import org.apache.skywalking.apm.dependencies.net.bytebuddy.description.method.MethodDescription;
import org.apache.skywalking.apm.dependencies.net.bytebuddy.matcher.ElementMatcher;
import org.apache.skywalking.apm.dependencies.net.bytebuddy.matcher.ElementMatchers;

/**
 * Makes SkyWalking's agent see {@code unladen.Pets}: the agent's own plugins for servers are not among what its project
 * publishes to Maven Central.
 */
public final class PetsPlugin extends ClassInstanceMethodsEnhancePluginDefine {
  @Override
  protected ClassMatch enhanceClass() {
    return NameMatch.byName("unladen.Pets");
  }

  @Override
  public ConstructorInterceptPoint[] getConstructorsInterceptPoints() {
    return new ConstructorInterceptPoint[0];
  }

  @Override
  public InstanceMethodsInterceptPoint[] getInstanceMethodsInterceptPoints() {
    return new InstanceMethodsInterceptPoint[] {
      point(ElementMatchers.namedOneOf("pets", "prices"), "unladen.skywalking.Entry"),
      point(ElementMatchers.named("ask"), "unladen.skywalking.Exit"),
    };
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
