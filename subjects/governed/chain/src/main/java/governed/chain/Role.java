package governed.chain;

import java.util.Locale;
import java.util.Optional;

/** A place in the chain: consumer, provider, data, in this order. */
public enum Role {
    CONSUMER,
    PROVIDER,
    DATA;

    /** As it is written on the command line, and in the registry. */
    public String written() {
        return name().toLowerCase(Locale.ROOT);
    }

    /** Who is called from here. */
    public Optional<Role> next() {
        return ordinal() + 1 < values().length ? Optional.of(values()[ordinal() + 1]) : Optional.empty();
    }

    /** The role that is written so. */
    public static Role of(String written) {
        for (Role role : values()) {
            if (role.written().equals(written)) {
                return role;
            }
        }
        throw new IllegalArgumentException("there is no role `" + written + "`: consumer, provider or data");
    }
}
