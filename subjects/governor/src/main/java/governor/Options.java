package governor;

import java.util.Arrays;
import java.util.LinkedHashSet;
import java.util.Set;

/**
 * What the agent was told on the command line: {@code registry=127.0.0.1:2181,rules=/governor,behaviours=router+removal,wait=10}.
 *
 * @param registry `host:port` of the ZooKeeper with the rules; must be there
 * @param rules node below which the rules are, one for each behaviour; `/governor` if it is not said
 * @param behaviours names of the behaviours to build in; all of them if it is not said
 * @param patience (`wait`) seconds that the application waits for the rules at most before it starts; 10 if it is not said
 */
public record Options(String registry, String rules, Set<String> behaviours, int patience) {

    /**
     * Reads them.
     *
     * @throws IllegalArgumentException which says what is wrong and what would be right
     */
    public static Options parse(String arguments) {
        String registry = null;
        String rules = "/governor";
        Set<String> behaviours = Set.of();
        int wait = 10;
        for (String part : (arguments == null ? "" : arguments).split(",")) {
            String[] pair = part.strip().split("=", 2);
            String value = pair.length == 2 ? pair[1].strip() : "";
            switch (pair[0]) {
                case "" -> { }
                case "registry" -> registry = value;
                case "rules" -> rules = value;
                case "behaviours" -> behaviours = new LinkedHashSet<>(Arrays.asList(value.split("\\+")));
                case "wait" -> wait = Integer.parseInt(value);
                default -> throw new IllegalArgumentException(
                        "there is no option `" + pair[0] + "`: registry, rules, behaviours or wait");
            }
        }
        if (registry == null) {
            throw new IllegalArgumentException("say where the rules are: -javaagent:governor.jar=registry=HOST:PORT");
        }
        return new Options(registry, rules, behaviours, wait);
    }
}
