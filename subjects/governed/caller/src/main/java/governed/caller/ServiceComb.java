package governed.caller;

import java.util.List;
import java.util.Optional;
import org.apache.servicecomb.core.SCBEngine;
import org.apache.servicecomb.localregistry.RegistryBean;
import org.apache.servicecomb.provider.pojo.Invoker;
import org.apache.servicecomb.provider.pojo.RpcSchema;
import org.apache.servicecomb.swagger.invocation.context.ContextUtils;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.ImportResource;

/** ServiceComb over REST, as most use it; who is where says a registry within the process. See {@code microservice.yaml}. */
final class ServiceComb implements Client {

    private static final String SERVICE = "echo";
    private static final String SCHEMA = "tag";

    private final TagService service;

    ServiceComb(String target) {
        Engine.start(target, false);
        service = Invoker.createProxy(SERVICE, SCHEMA, TagService.class);
    }

    @Override
    public String call() {
        return service.tag();
    }

    /**
     * ServiceComb itself. A process has one, which lives as long as the process does: in tests, where both are in one process, the
     * echo comes first and the client finds it started.
     */
    static final class Engine {

        private static AnnotationConfigApplicationContext started;

        private Engine() {}

        static synchronized void start(String echo, boolean serves) {
            if (started != null) {
                return;
            }
            String endpoint = "rest://" + echo + "?sslEnabled=false";
            if (serves) {
                System.setProperty("servicecomb.rest.address", echo + "?sslEnabled=false");
            }
            RegistryBean.Instance instance = new RegistryBean.Instance().setEndpoints(List.of(endpoint));
            RegistryBean known = new RegistryBean()
                    .setId(SERVICE)
                    .setServiceName(SERVICE)
                    .setAppId("governed")
                    .setVersion("1.0.0")
                    .addSchemaInterface(SCHEMA, TagService.class)
                    .setInstances(new RegistryBean.Instances().setInstances(List.of(instance)));
            AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
            context.register(Beans.class);
            context.registerBean(RegistryBean.class, () -> known);
            if (serves) {
                context.registerBean(Seen.class);
            }
            context.refresh();
            SCBEngine.getInstance().ensureStatusUp();
            started = context;
        }
    }

    /** Its own beans. */
    @ImportResource("classpath*:META-INF/spring/*.bean.xml")
    static class Beans {}

    /** What the echo answers. */
    @RpcSchema(schemaId = SCHEMA, schemaInterface = TagService.class)
    public static class Seen implements TagService {
        @Override
        public String tag() {
            return Optional.ofNullable(ContextUtils.getInvocationContext().getContext(TAG)).orElse(NONE);
        }
    }
}
