package governor.balancer;

import governor.rules.RuleText;

/**
 * Instances whose calls fail are not called for a while.
 *
 * @param service the service that is called; empty for all
 * @param windowSeconds so far back calls count
 * @param errors share of failed calls from which on an instance is taken out
 * @param calls fewer calls in the window say nothing
 * @param most share of a service's instances that may be out at the same time, at most; one always stays
 * @param restSeconds how long an instance is out; then it is called again, and its past is forgotten
 */
public record RemovalRule(String service, int windowSeconds, double errors, int calls, double most, int restSeconds) {

    /** Longest window, in seconds. */
    static final int LONGEST_WINDOW = 60;

    static RemovalRule of(RuleText text) {
        RemovalRule rule = new RemovalRule(
                text.text("service", ""),
                text.count("window", 10, LONGEST_WINDOW),
                text.share("errors", 0.5),
                text.count("calls", 5, 1_000_000),
                text.share("most", 0.6),
                text.count("rest", 30, 86_400));
        text.end();
        return rule;
    }

    boolean covers(String called) {
        return service.isEmpty() || service.equals(called);
    }
}
