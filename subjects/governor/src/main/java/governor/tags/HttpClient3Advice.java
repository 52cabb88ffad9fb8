package governor.tags;

import governor.boot.Tags;
import java.util.Map;
import net.bytebuddy.asm.Advice;
import org.apache.commons.httpclient.HttpMethod;

/** In Apache HttpClient 3, where a request is executed: hands the tags on. */
public final class HttpClient3Advice {

    private HttpClient3Advice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.Argument(1) HttpMethod request) {
        for (Map.Entry<String, String> tag : Tags.toTransmit().entrySet()) {
            request.setRequestHeader(tag.getKey(), tag.getValue());
        }
    }
}
