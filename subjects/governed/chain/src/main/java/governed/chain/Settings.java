package governed.chain;

import java.time.Duration;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.ConstructorBinding;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * What makes one service of the chain differ from another.
 *
 * <p>From the environment (see `chain.yml`): LABEL, STALLED, INSTANCES and TIMEOUT. The role is the argument.
 */
@ConfigurationProperties("chain")
@ConstructorBinding
public class Settings {

    private final Role role;
    private final String label;
    private final String stalled;
    private final int instances;
    private final Duration timeout;

    /**
     * @param role place in the chain
     * @param label told to the registry as `version` of the instance
     * @param stalled the label of those that answer no call in time; nobody if empty
     * @param instances how many instances of the next service there must be for this one to be ready
     * @param timeout how long an answer of the next service is waited for
     */
    public Settings(
            Role role,
            @DefaultValue("-") String label,
            @DefaultValue("") String stalled,
            @DefaultValue("1") int instances,
            @DefaultValue("1s") Duration timeout) {
        this.role = role;
        this.label = label;
        this.stalled = stalled;
        this.instances = instances;
        this.timeout = timeout;
    }

    public Role role() {
        return role;
    }

    public String label() {
        return label;
    }

    public boolean isStalled() {
        return !stalled.isEmpty() && stalled.equals(label);
    }

    public int instances() {
        return instances;
    }

    public Duration timeout() {
        return timeout;
    }
}
