package governor.tags;

import governor.boot.Tags;
import java.util.Map;
import io.grpc.Metadata;
import net.bytebuddy.asm.Advice;

/** In gRPC's client, where a call starts: hands the tags on as metadata. */
public final class GrpcAdvice {

    private GrpcAdvice() {}

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static void enter(@Advice.Argument(1) Metadata headers) {
        for (Map.Entry<String, String> tag : Tags.toTransmit().entrySet()) {
            Metadata.Key<String> key = Metadata.Key.of(tag.getKey(), Metadata.ASCII_STRING_MARSHALLER);
            headers.discardAll(key);
            headers.put(key, tag.getValue());
        }
    }
}
