package governor;

import governor.rules.RuleText;

/** Something that the agent can do to an application. It does so while there is a rule for it. */
public interface Behaviour {

    /** Its name, on the command line and as the name of the rule's node. */
    String name();

    /**
     * Takes a new rule.
     *
     * @param text the rule, or null if there is none any more
     * @throws IllegalArgumentException if it is none; the old rule then stays
     */
    void rule(RuleText text);

    /** Says what must be built into the application's classes. */
    void install(Advised advised);
}
