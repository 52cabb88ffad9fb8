package governor.balancer;

import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesNoArguments;

import governor.Advised;
import governor.Behaviour;
import governor.boot.Tags;
import governor.rules.RuleText;
import governor.tags.Servlets;
import java.util.Set;

/** Label routing for Spring Cloud LoadBalancer with its cache on, as it is by default. */
public final class Router implements Behaviour {

    @Override
    public String name() {
        return "router";
    }

    @Override
    public void rule(RuleText text) {
        RouterRule rule = text == null ? null : RouterRule.of(text);
        Selection.routerRule = rule;
        Tags.route(rule == null ? Set.of() : Set.of(rule.header()));
    }

    @Override
    public void install(Advised advised) {
        Servlets.install(advised);
        installList(advised);
    }

    /** The hook in the list of instances. */
    static void installList(Advised advised) {
        advised.add(
                "org.springframework.cloud.loadbalancer.core.CachingServiceInstanceListSupplier",
                named("get").and(takesNoArguments()),
                "governor.balancer.ListAdvice");
    }
}
