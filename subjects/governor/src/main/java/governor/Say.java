package governor;

/** The one place where the agent speaks: a line on standard output. */
public final class Say {

    private Say() {}

    /** A line of the log. */
    public static void line(String text) {
        System.out.println("governor: " + text);
    }
}
