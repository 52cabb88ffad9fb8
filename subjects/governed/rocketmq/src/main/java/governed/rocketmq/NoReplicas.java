package governed.rocketmq;

import org.apache.rocketmq.store.ha.DefaultHAService;

/**
 * A broker without replicas, which RocketMQ finds in {@code META-INF/service}: its own listens for them on all addresses of the machine,
 * and nothing can be said about that. (With {@code duplicationEnable} it does not, but then no message is ever shown to a consumer.)
 */
public final class NoReplicas extends DefaultHAService {

    @Override
    public void start() {}

    @Override
    public void shutdown() {}
}
