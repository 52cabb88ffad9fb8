package governed.caller;

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
    SERVICECOMB
}
