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
    private static final String PLAIN = "?sslEnabled=false";

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
            // It resolves every environment variable, and some hold a placeholder that is none of its own: make exports MAKEOVERRIDES.
            System.setProperty("servicecomb.config.ignoreResolveFailure", "true");
            // Each is called something else: of two services of one name, one without the schema, either may be asked.
            System.setProperty("servicecomb.service.name", serves ? SERVICE : "caller");
            AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
            context.register(Beans.class);
            if (serves) {
                System.setProperty("servicecomb.rest.address", echo + PLAIN);
                context.registerBean(Seen.class);
            } else {
                context.registerBean(RegistryBean.class, () -> known("rest://" + echo + PLAIN));
            }
            context.refresh();
            SCBEngine.getInstance().ensureStatusUp();
            started = context;
        }

        private static RegistryBean known(String endpoint) {
            RegistryBean.Instance instance = new RegistryBean.Instance().setEndpoints(List.of(endpoint));
            return new RegistryBean()
                    .setId(SERVICE)
                    .setServiceName(SERVICE)
                    .setAppId("governed")
                    .setVersion("1.0.0")
                    .addSchemaInterface(SCHEMA, TagService.class)
                    .setInstances(new RegistryBean.Instances().setInstances(List.of(instance)));
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
