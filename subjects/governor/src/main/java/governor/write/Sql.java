package governor.write;

import java.util.Locale;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Whether a statement writes, by its words: the drivers do not say. */
final class Sql {

    private static final Set<String> WRITES = Set.of(
            "insert", "update", "delete", "replace", "merge", "truncate", "create", "alter", "drop", "rename", "load", "copy", "import");

    /** Blanks, comments and opening brackets. */
    private static final Pattern BEFORE = Pattern.compile("\\G(?:[\\s(;]+|--[^\\n]*\\n|#[^\\n]*\\n|/\\*.*?\\*/)", Pattern.DOTALL);

    private static final Pattern WORD = Pattern.compile("[a-z]+");
    private static final Pattern QUOTED = Pattern.compile("'(?:[^'\\\\]|''|\\\\.)*'|\"[^\"]*\"|`[^`]*`");
    private static final Pattern WRITE_WITHIN = Pattern.compile("\\b(insert|update|delete|merge)\\b");

    private Sql() {}

    /**
     * Whether it does. What a called function does is not seen; a statement that begins with `with` writes if one of its words, outside
     * of quotes, is one that does.
     */
    static boolean writes(String statement) {
        int start = 0;
        Matcher before = BEFORE.matcher(statement);
        while (before.find()) {
            start = before.end();
        }
        // Only so much is looked at in any case: most statements are long, their first words are not.
        String text = statement.substring(start).toLowerCase(Locale.ROOT);
        Matcher word = WORD.matcher(text);
        if (!word.lookingAt()) {
            return false;
        }
        String first = word.group();
        if (first.equals("with")) {
            return WRITE_WITHIN.matcher(QUOTED.matcher(text).replaceAll("''")).find();
        }
        return WRITES.contains(first);
    }
}
