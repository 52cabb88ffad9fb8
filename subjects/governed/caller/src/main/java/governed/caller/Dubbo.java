package governed.caller;

import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ReferenceConfig;

/** Dubbo 2, without a registry. */
final class Dubbo implements Client {

    /** 127.0.0.1 as one number: what is written with dots Dubbo replaces by an address of the machine's that others see. */
    static final String LOOPBACK = "2130706433";

    private final ReferenceConfig<TagService> reference = new ReferenceConfig<>();
    private final TagService service;

    Dubbo(String target) {
        reference.setApplication(application("caller"));
        reference.setInterface(TagService.class);
        reference.setUrl("dubbo://" + LOOPBACK + target.substring(target.indexOf(':')));
        service = reference.get();
    }

    /** Who calls or is called; without the port on which it would take orders. */
    static ApplicationConfig application(String name) {
        ApplicationConfig application = new ApplicationConfig(name);
        application.setQosEnable(false);
        return application;
    }

    @Override
    public String call() {
        return service.tag();
    }

    @Override
    public void close() {
        reference.destroy();
    }
}
