package governed.caller;

import java.util.function.Function;

/** A client library that calls the echo. It knows nothing of tags: whoever governs it may put one in. */
interface Client extends AutoCloseable {

    /** Header in which a tag goes from service to service; in libraries without headers, key of what goes beside the arguments. */
    String TAG = "x-tag";

    /** What the echo says instead of the tag of a request that has none. */
    String NONE = "none";

    /** Calls once; returns the tag that has arrived there. */
    String call() throws Exception;

    @Override
    default void close() throws Exception {}

    /**
     * The client of a name.
     *
     * @param address `host:port` of a side of the echo
     */
    static Client of(String name, Function<Side, String> address) {
        return switch (name) {
            case "httpclient3" -> new HttpClient3(url(address));
            case "httpclient4" -> new HttpClient4(url(address));
            case "okhttp2" -> new OkHttp2(url(address));
            case "jdk" -> new JdkHttp(url(address));
            case "grpc" -> new Grpc(address.apply(Side.GRPC));
            case "dubbo" -> new Dubbo(address.apply(Side.DUBBO));
            case "sofarpc" -> new SofaRpc(address.apply(Side.SOFARPC));
            case "servicecomb" -> new ServiceComb(address.apply(Side.SERVICECOMB));
            default -> throw new IllegalArgumentException("there is no client `" + name
                    + "`: httpclient3, httpclient4, okhttp2, jdk, grpc, dubbo, sofarpc or servicecomb");
        };
    }

    private static String url(Function<Side, String> address) {
        return "http://" + address.apply(Side.HTTP) + HttpEcho.PATH;
    }
}
