package governed.caller;

import java.util.Locale;

/** The ways in which the echo can be called. */
public enum Side {
    /** For all libraries that speak HTTP. */
    HTTP,
    /** For gRPC. */
    GRPC,
    /** For Dubbo. */
    DUBBO,
    /** For SofaRPC. */
    SOFARPC,
    /** For ServiceComb. */
    SERVICECOMB;

    /** Name of the service's setting that says where it is. */
    String setting() {
        return "caller.echo." + name().toLowerCase(Locale.ROOT);
    }
}
