package governed.caller;

import com.alipay.sofa.rpc.config.ConsumerConfig;
import java.util.List;

/** SofaRPC by its own protocol, Bolt, without a registry. */
final class SofaRpc implements Client {

    static {
        configure();
    }

    private final ConsumerConfig<TagService> consumer;
    private final TagService service;

    SofaRpc(String target) {
        consumer = new ConsumerConfig<TagService>()
                .setInterfaceId(TagService.class.getName())
                .setProtocol("bolt")
                .setFilter(List.of("-consumerTracer"))
                .setDirectUrl("bolt://" + target);
        service = consumer.refer();
    }

    /** It logs as everything else here does, not into files in the home folder, and without its tracer, which writes files, too. */
    static void configure() {
        System.setProperty("module.load.list", "*,!sofaTracer");
        System.setProperty("logger.impl", "com.alipay.sofa.rpc.log.SLF4JLoggerImpl");
        System.setProperty("sofa.middleware.log.disable", "true");
    }

    @Override
    public String call() {
        return service.tag();
    }

    @Override
    public void close() {
        consumer.unRefer();
    }
}
