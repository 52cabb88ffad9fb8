package governor.tags;

import governor.boot.Tags;
import java.util.Map;
import net.bytebuddy.asm.Advice;
import org.apache.servicecomb.core.Invocation;

/** In ServiceComb, the last handler before the transport: hands the tags on in the context of the call. */
public final class ServiceCombAdvice {

    private ServiceCombAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.Argument(0) Invocation call) {
        for (Map.Entry<String, String> tag : Tags.toTransmit().entrySet()) {
            call.addContext(tag.getKey(), tag.getValue());
        }
    }
}
