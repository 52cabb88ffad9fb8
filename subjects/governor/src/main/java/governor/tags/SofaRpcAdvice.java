package governor.tags;

import governor.boot.Tags;
import java.util.Map;
import net.bytebuddy.asm.Advice;
import com.alipay.sofa.rpc.core.request.SofaRequest;

/** In SofaRPC, where a request leaves the chain of filters: hands the tags on as its properties. */
public final class SofaRpcAdvice {

    private SofaRpcAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.Argument(0) SofaRequest request) {
        for (Map.Entry<String, String> tag : Tags.toTransmit().entrySet()) {
            request.addRequestProp(tag.getKey(), tag.getValue());
        }
    }
}
