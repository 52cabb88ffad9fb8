package governor.balancer;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import governor.Advised;
import governor.Behaviour;
import governor.rules.RuleText;

/** Outlier instance removal for Spring Cloud LoadBalancer's blocking client. */
public final class Removal implements Behaviour {

    @Override
    public String name() {
        return "removal";
    }

    @Override
    public void rule(RuleText text) {
        Selection.removalRule = text == null ? null : RemovalRule.of(text);
    }

    @Override
    public void install(Advised advised) {
        Router.installList(advised);
        advised.add(
                "org.springframework.cloud.loadbalancer.blocking.client.BlockingLoadBalancerClient",
                named("execute").and(takesArguments(3)),
                "governor.balancer.CallAdvice");
    }
}
