package governor.tags;

import com.squareup.okhttp.Request;
import governor.boot.Tags;
import java.util.Map;
import net.bytebuddy.asm.Advice;

/** In OkHttp 2, where a call is executed: hands the tags on. Its requests do not change, so the call gets another one. */
public final class OkHttp2Advice {

    private OkHttp2Advice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    @SuppressWarnings("UnusedAssignment")
    static void enter(@Advice.FieldValue(value = "originalRequest", readOnly = false) Request request) {
        Map<String, String> tags = Tags.toTransmit();
        if (tags.isEmpty()) {
            return;
        }
        Request.Builder other = request.newBuilder();
        for (Map.Entry<String, String> tag : tags.entrySet()) {
            other.header(tag.getKey(), tag.getValue());
        }
        request = other.build();
    }
}
