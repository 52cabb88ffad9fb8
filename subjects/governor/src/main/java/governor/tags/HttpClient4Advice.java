package governor.tags;

import governor.boot.Tags;
import java.util.Map;
import net.bytebuddy.asm.Advice;
import org.apache.http.HttpRequest;

/** In Apache HttpClient 4, where a request is executed: hands the tags on. */
public final class HttpClient4Advice {

    private HttpClient4Advice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.Argument(1) HttpRequest request) {
        for (Map.Entry<String, String> tag : Tags.toTransmit().entrySet()) {
            request.setHeader(tag.getKey(), tag.getValue());
        }
    }
}
