package governor.tags;

import static net.bytebuddy.matcher.ElementMatchers.isPublic;
import static net.bytebuddy.matcher.ElementMatchers.named;

import governor.Advised;

/** Where requests come in: servlets of the `javax` line. */
public final class Servlets {

    private Servlets() {}

    /** Remembers the tags of requests that come in. */
    public static void install(Advised advised) {
        // The public `service` calls the protected one, which frameworks override.
        advised.add("javax.servlet.http.HttpServlet", named("service").and(isPublic()), "governor.tags.ServletAdvice");
    }
}
