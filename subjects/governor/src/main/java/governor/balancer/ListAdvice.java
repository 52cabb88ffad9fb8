package governor.balancer;

import java.util.List;
import java.util.function.Function;
import net.bytebuddy.asm.Advice;
import org.springframework.cloud.client.ServiceInstance;
import org.springframework.cloud.loadbalancer.core.ServiceInstanceListSupplier;
import reactor.core.publisher.Flux;

/**
 * In the list that the load balancer chooses from, behind its cache: leaves out whom the rules leave out. The list may be made on
 * another thread, so what the request's own thread knows is asked here, where it asks for the list.
 */
public final class ListAdvice {

    private ListAdvice() {}

    @Advice.OnMethodExit(suppress = Throwable.class)
    @SuppressWarnings({"unchecked", "rawtypes", "UnusedAssignment"})
    static void exit(
            @Advice.This ServiceInstanceListSupplier supplier,
            @Advice.Return(readOnly = false) Flux<List<ServiceInstance>> lists) {
        Selection selection = Selection.of(supplier.getServiceId());
        if (selection != null) {
            lists = lists.map((Function) selection);
        }
    }
}
