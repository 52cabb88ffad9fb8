package governed.caller;

import com.alipay.sofa.rpc.config.ConsumerConfig;

/** SofaRPC by its own protocol, Bolt, without a registry. */
final class SofaRpc implements Client {

    static {
        logsAsOthersDo();
    }

    private final ConsumerConfig<TagService> consumer;
    private final TagService service;

    SofaRpc(String target) {
        consumer = new ConsumerConfig<TagService>()
                .setInterfaceId(TagService.class.getName())
                .setProtocol("bolt")
                .setDirectUrl("bolt://" + target);
        service = consumer.refer();
    }

    /** Otherwise it writes files of its own into the home folder. */
    static void logsAsOthersDo() {
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
