package governor.tags;

import governor.boot.Tags;
import java.util.Map;
import java.net.URLConnection;
import net.bytebuddy.asm.Advice;

/** In the JDK's HTTP connection, before it connects: hands the tags on. Afterwards it takes no more headers, and says so by an exception. */
public final class JdkHttpAdvice {

    private JdkHttpAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.This URLConnection connection) {
        for (Map.Entry<String, String> tag : Tags.toTransmit().entrySet()) {
            connection.setRequestProperty(tag.getKey(), tag.getValue());
        }
    }
}
