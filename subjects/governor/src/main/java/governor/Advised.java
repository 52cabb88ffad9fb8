package governor;

import static net.bytebuddy.matcher.ElementMatchers.named;

import java.util.HashSet;
import java.util.Set;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.matcher.ElementMatcher;

/**
 * Advice for the methods of classes that the agent itself cannot see. So classes and advice are named, not referred to: advice is
 * read from the agent's jar as bytes and becomes a part of the application's class.
 */
public final class Advised {

    private final ClassLoader agent;
    private final Set<String> done = new HashSet<>();
    private AgentBuilder builder;

    Advised(AgentBuilder builder, ClassLoader agent) {
        this.builder = builder;
        this.agent = agent;
    }

    /** The class {@code advice} around the methods of {@code type} that {@code methods} matches; once, however often it is wanted. */
    public void add(String type, ElementMatcher<? super MethodDescription> methods, String advice) {
        if (done.add(type + " " + advice)) {
            builder = builder.type(named(type))
                    .transform(new AgentBuilder.Transformer.ForAdvice().include(agent).advice(methods, advice));
        }
    }

    AgentBuilder builder() {
        return builder;
    }
}
