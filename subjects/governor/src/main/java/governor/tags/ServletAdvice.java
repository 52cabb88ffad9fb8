package governor.tags;

import governor.boot.Tags;
import java.util.HashMap;
import java.util.Map;
import javax.servlet.ServletRequest;
import javax.servlet.http.HttpServletRequest;
import net.bytebuddy.asm.Advice;

/** In {@code HttpServlet.service(ServletRequest, ServletResponse)}: remembers the caller's headers while the request is served. */
public final class ServletAdvice {

    private ServletAdvice() {}

    /** Returns whether tags were set, and with it those from before. */
    @Advice.OnMethodEnter(suppress = Throwable.class)
    static boolean enter(@Advice.Argument(0) ServletRequest request, @Advice.Local("around") Map<String, String> around) {
        String[] wanted = Tags.wanted();
        if (wanted.length == 0 || !(request instanceof HttpServletRequest)) {
            return false;
        }
        Map<String, String> tags = new HashMap<>();
        for (String name : wanted) {
            String value = ((HttpServletRequest) request).getHeader(name);
            if (value != null) {
                tags.put(name, value);
            }
        }
        around = Tags.enter(tags);
        return true;
    }

    @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Advice.Enter boolean entered, @Advice.Local("around") Map<String, String> around) {
        if (entered) {
            Tags.leave(around);
        }
    }
}
