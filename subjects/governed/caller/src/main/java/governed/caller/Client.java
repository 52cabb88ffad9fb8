package governed.caller;

/** A client library that calls the echo. It knows nothing of tags: whoever governs it may put one in. */
interface Client extends AutoCloseable {

    /** Header in which a tag goes from service to service; in gRPC, key of the metadata. */
    String TAG = "x-tag";

    /** What the echo says instead of the tag of a request that has none. */
    String NONE = "none";

    /** Calls once; returns the tag that has arrived there. */
    String call() throws Exception;

    @Override
    default void close() throws Exception {}

    /**
     * The client of a name: `httpclient3`, `httpclient4`, `okhttp2`, `jdk` or `grpc`.
     *
     * @param echo `http://host:port` of the echo
     * @param grpc `host:port` of its gRPC side
     */
    static Client of(String name, String echo, String grpc) {
        return switch (name) {
            case "httpclient3" -> new HttpClient3(echo + Echo.PATH);
            case "httpclient4" -> new HttpClient4(echo + Echo.PATH);
            case "okhttp2" -> new OkHttp2(echo + Echo.PATH);
            case "jdk" -> new JdkHttp(echo + Echo.PATH);
            case "grpc" -> new Grpc(grpc);
            default -> throw new IllegalArgumentException(
                    "there is no client `" + name + "`: httpclient3, httpclient4, okhttp2, jdk or grpc");
        };
    }
}
