package governor.rules;

import java.io.IOException;
import java.io.StringReader;
import java.util.Arrays;
import java.util.Locale;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * A rule as it is written: lines `key=value`. Whoever asks for a key takes it; {@link #end} refuses what nobody has asked for.
 *
 * <p>All methods throw an {@link IllegalArgumentException} that names the key, what it says and what it should say.
 */
public final class RuleText {

    private final Properties left;

    private RuleText(Properties all) {
        left = all;
    }

    public static RuleText parse(String text) {
        Properties all = new Properties();
        try {
            all.load(new StringReader(text));
        } catch (IOException cannotBe) {
            throw new IllegalArgumentException(cannotBe);
        }
        return new RuleText(all);
    }

    /** The text of a key that must be there. */
    public String text(String key) {
        String value = text(key, "");
        if (value.isEmpty()) {
            throw new IllegalArgumentException("`" + key + "=…` is missing");
        }
        return value;
    }

    /** The text of a key that may be absent. */
    public String text(String key, String absent) {
        Object value = left.remove(key);
        return value == null ? absent : value.toString().strip();
    }

    /** Names with commas between them; at least one. */
    public Set<String> names(String key) {
        Set<String> names = Arrays.stream(text(key).split(","))
                .map(String::strip)
                .filter(name -> !name.isEmpty())
                .collect(Collectors.toUnmodifiableSet());
        if (names.isEmpty()) {
            throw new IllegalArgumentException("`" + key + "` names nothing");
        }
        return names;
    }

    /** The same, in lower case. */
    public Set<String> lowerNames(String key) {
        return names(key).stream().map(name -> name.toLowerCase(Locale.ROOT)).collect(Collectors.toUnmodifiableSet());
    }

    /** A number from 0 to 1. */
    public double share(String key, double absent) {
        return number(key, absent, 1.0, "a share from 0 to 1");
    }

    /** A whole number from 1 on, at most {@code most}. */
    public int count(String key, int absent, int most) {
        double value = number(key, absent, most, "a whole number from 1 to " + most);
        if (value < 1 || value != Math.rint(value)) {
            throw new IllegalArgumentException("`" + key + "` is " + value + "; it must be a whole number from 1 to " + most);
        }
        return (int) value;
    }

    private double number(String key, double absent, double most, String wanted) {
        String written = text(key, Double.toString(absent));
        double value;
        try {
            value = Double.parseDouble(written);
        } catch (NumberFormatException notANumber) {
            value = Double.NaN;
        }
        if (!(value >= 0 && value <= most)) {
            throw new IllegalArgumentException("`" + key + "` is `" + written + "`; it must be " + wanted);
        }
        return value;
    }

    /** Called when all that is known was asked for. */
    public void end() {
        if (!left.isEmpty()) {
            throw new IllegalArgumentException("there is no key " + left.keySet());
        }
    }
}
