package governor.balancer;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import org.springframework.cloud.client.ServiceInstance;
import org.springframework.http.client.ClientHttpResponse;

/** In the call of an instance that was chosen: whether it failed. It did if it threw, or if its answer says that the server failed. */
public final class CallAdvice {

    private static final int SERVER_FAILED = 500;

    private CallAdvice() {}

    @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(
            @Advice.Argument(1) ServiceInstance instance,
            @Advice.Return(typing = Assigner.Typing.DYNAMIC) Object answer,
            @Advice.Thrown Throwable thrown)
            throws java.io.IOException {
        boolean failed = thrown != null
                || answer instanceof ClientHttpResponse && ((ClientHttpResponse) answer).getRawStatusCode() >= SERVER_FAILED;
        Selection.called(instance.getHost(), instance.getPort(), failed);
    }
}
