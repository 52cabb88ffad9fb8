package governor.balancer;

import governor.rules.RuleText;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;

/**
 * Requests with a header go to the instances that carry its value as a label.
 *
 * @param service the service that is called
 * @param header the header of the caller's request, in lower case
 * @param label the label, among what instances tell the registry of themselves
 */
public record RouterRule(String service, String header, String label) {

    static RouterRule of(RuleText text) {
        RouterRule rule = new RouterRule(text.text("service"), text.text("header").toLowerCase(Locale.ROOT), text.text("label"));
        text.end();
        return rule;
    }

    /**
     * The instances that are left to choose from; all of them if none has the label, for an answer of another version is better than
     * none.
     *
     * @param value what the request's header says; null if it has none, and then nothing is chosen
     */
    public <T> List<T> choose(List<T> instances, String value, Function<T, Map<String, String>> labels) {
        if (value == null) {
            return instances;
        }
        List<T> chosen = new ArrayList<>(instances.size());
        for (T instance : instances) {
            if (value.equals(labels.apply(instance).get(label))) {
                chosen.add(instance);
            }
        }
        return chosen.isEmpty() ? instances : chosen;
    }
}
