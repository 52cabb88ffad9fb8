package governed.caller;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.Map;
import java.util.function.ToIntFunction;
import java.util.stream.Stream;

/** Says which tag a call has brought, by whatever library it came, on 127.0.0.1. It carries no agent. */
public final class Echo implements AutoCloseable {

    /** What listens on one of its sides. */
    interface Listener {
        int port();

        void close();
    }

    private final Map<Side, Listener> listeners = new EnumMap<>(Side.class);

    /** Starts it with a port for each side; 0 takes any free one. */
    public Echo(ToIntFunction<Side> ports) throws IOException {
        for (Side side : Side.values()) {
            int port = ports.applyAsInt(side);
            listeners.put(side, listen(side, port == 0 ? freePort() : port));
        }
    }

    private static Listener listen(Side side, int port) throws IOException {
        return switch (side) {
            case HTTP -> new HttpEcho(port);
            case GRPC -> new GrpcEcho(port);
            case DUBBO -> new DubboEcho(port);
            case SOFARPC -> new SofaRpcEcho(port);
            case SERVICECOMB -> new ServiceCombEcho(port);
        };
    }

    /** Not all libraries find one themselves. */
    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    /** `host:port` of one of its sides. */
    public String address(Side side) {
        return address(listeners.get(side).port());
    }

    /** What the service is to be told to find it. */
    public Stream<String> settings() {
        return Arrays.stream(Side.values()).map(side -> side.setting() + "=" + address(side));
    }

    static String address(int port) {
        return InetAddress.getLoopbackAddress().getHostAddress() + ":" + port;
    }

    @Override
    public void close() {
        listeners.values().forEach(Listener::close);
    }
}
