package governor.balancer;

import static java.lang.invoke.MethodType.methodType;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.util.Map;

/** Reads Spring Cloud's instances, whose type the agent's own loader does not see. */
final class Instances {

    private static final String TYPE = "org.springframework.cloud.client.ServiceInstance";

    private static final ClassValue<Instances> OF = new ClassValue<>() {
        @Override
        protected Instances computeValue(Class<?> type) {
            return new Instances(type);
        }
    };

    private final MethodHandle host;
    private final MethodHandle port;
    private final MethodHandle labels;

    private Instances(Class<?> type) {
        try {
            Class<?> api = Class.forName(TYPE, false, type.getClassLoader());
            MethodHandles.Lookup lookup = MethodHandles.publicLookup();
            host = lookup.findVirtual(api, "getHost", methodType(String.class)).asType(methodType(String.class, Object.class));
            port = lookup.findVirtual(api, "getPort", methodType(int.class)).asType(methodType(int.class, Object.class));
            labels = lookup.findVirtual(api, "getMetadata", methodType(Map.class)).asType(methodType(Map.class, Object.class));
        } catch (ReflectiveOperationException changed) {
            throw new IllegalStateException(TYPE + " is not as the agent knows it", changed);
        }
    }

    /** `host:port`. */
    static String name(Object instance) {
        Instances of = OF.get(instance.getClass());
        try {
            return name((String) of.host.invokeExact(instance), (int) of.port.invokeExact(instance));
        } catch (Throwable failed) {
            throw new IllegalStateException(failed);
        }
    }

    static String name(String host, int port) {
        return host + ":" + port;
    }

    /** What the instance has told the registry of itself. */
    @SuppressWarnings("unchecked")
    static Map<String, String> labels(Object instance) {
        Map<String, String> found;
        try {
            found = (Map<String, String>) (Map<?, ?>) OF.get(instance.getClass()).labels.invokeExact(instance);
        } catch (Throwable failed) {
            throw new IllegalStateException(failed);
        }
        return found == null ? Map.of() : found;
    }
}
