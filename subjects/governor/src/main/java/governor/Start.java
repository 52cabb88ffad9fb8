package governor;

import static net.bytebuddy.matcher.ElementMatchers.nameStartsWith;

import governor.balancer.Removal;
import governor.balancer.Router;
import governor.consume.ConsumeProhibition;
import governor.rules.RuleText;
import governor.rules.RuleWatch;
import governor.tags.TagTransmission;
import governor.write.WriteProhibition;
import java.lang.instrument.Instrumentation;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.utility.JavaModule;

/** Builds the behaviours into the application and keeps their rules up to date. */
final class Start {

    private Start() {}

    private static List<Behaviour> known() {
        return List.of(new Router(), new Removal(), new TagTransmission(), new ConsumeProhibition(), new WriteProhibition());
    }

    static void start(Options options, Instrumentation instrumentation) throws InterruptedException {
        Map<String, Behaviour> behaviours = new TreeMap<>();
        List<String> names = new ArrayList<>();
        for (Behaviour behaviour : known()) {
            names.add(behaviour.name());
            if (options.behaviours().isEmpty() || options.behaviours().contains(behaviour.name())) {
                behaviours.put(behaviour.name(), behaviour);
            }
        }
        if (!names.containsAll(options.behaviours())) {
            throw new IllegalArgumentException("behaviours are " + names + ", not " + options.behaviours());
        }
        build(behaviours, instrumentation);

        CountDownLatch read = new CountDownLatch(1);
        // It lives as long as the application does.
        RuleWatch watch = new RuleWatch(options.registry(), options.rules(), (name, text) -> take(behaviours, name, text), () -> {
            Say.line("loaded: " + String.join(", ", behaviours.keySet()));
            read.countDown();
        });
        if (!read.await(options.patience(), TimeUnit.SECONDS)) {
            Say.line("no answer from the registry " + options.registry() + " in " + options.patience()
                    + " s: the application starts without rules, until it answers");
        }
    }

    private static void build(Map<String, Behaviour> behaviours, Instrumentation instrumentation) {
        AgentBuilder builder = new AgentBuilder.Default().disableClassFormatChanges()
                .with(AgentBuilder.RedefinitionStrategy.RETRANSFORMATION)
                .with(new Complaints())
                // By default classes of the JDK are left alone, and one of its HTTP client is not to be.
                .ignore(nameStartsWith("governor."));
        Advised advised = new Advised(builder, Start.class.getClassLoader());
        behaviours.values().forEach(behaviour -> behaviour.install(advised));
        advised.builder().installOn(instrumentation);
    }

    private static void take(Map<String, Behaviour> behaviours, String name, String text) {
        Behaviour behaviour = behaviours.get(name);
        if (behaviour == null) {
            return;
        }
        try {
            behaviour.rule(text == null ? null : RuleText.parse(text));
            Say.line(text == null ? "no rule for " + name + " any more" : "a rule for " + name);
        } catch (IllegalArgumentException wrong) {
            Say.line("the rule for " + name + " is none and is not taken: " + wrong.getMessage());
        }
    }

    /** Says which class could not be changed: the behaviour is not there, however fine the application runs. */
    private static final class Complaints extends AgentBuilder.Listener.Adapter {
        @Override
        public void onError(String type, ClassLoader loader, JavaModule module, boolean loaded, Throwable failed) {
            Say.line("could not change " + type + ": " + failed);
        }

        @Override
        public void onTransformation(
                TypeDescription type,
                ClassLoader loader,
                JavaModule module,
                boolean loaded,
                net.bytebuddy.dynamic.DynamicType changed) {
            Say.line("changed " + type.getName());
        }
    }
}
