package governed.caller;

import org.apache.dubbo.config.ApplicationConfig;
import org.apache.dubbo.config.ReferenceConfig;

/** Dubbo 2, without a registry. */
final class Dubbo implements Client {

    private final ReferenceConfig<TagService> reference = new ReferenceConfig<>();
    private final TagService service;

    Dubbo(String target) {
        reference.setApplication(application("caller"));
        reference.setInterface(TagService.class);
        reference.setUrl("dubbo://" + target);
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
