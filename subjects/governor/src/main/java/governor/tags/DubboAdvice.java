package governor.tags;

import governor.boot.Tags;
import java.util.Map;
import net.bytebuddy.asm.Advice;
import org.apache.dubbo.rpc.Invocation;

/** In Dubbo, before what goes beside the arguments is filled in: hands the tags on as attachments. */
public final class DubboAdvice {

    private DubboAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.Argument(1) Invocation call) {
        for (Map.Entry<String, String> tag : Tags.toTransmit().entrySet()) {
            call.setAttachment(tag.getKey(), tag.getValue());
        }
    }
}
