package governed.registry;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/** A ZooKeeper of one server, in this process, on 127.0.0.1 only. */
public final class Registry implements AutoCloseable {

    private static final int TICK_MILLISECONDS = 500;
    private static final int MOST_CONNECTIONS_OF_A_CLIENT = 256;

    private final ZooKeeperServer server;
    private final ServerCnxnFactory connections;

    private Registry(ZooKeeperServer server, ServerCnxnFactory connections) {
        this.server = server;
        this.connections = connections;
    }

    /**
     * Starts the server; it answers when this returns.
     *
     * @param port where it listens; 0 takes any free port
     * @param data folder for its snapshots and its log; made if it is not there
     * @throws IOException if the port is taken or the folder cannot be written
     */
    public static Registry start(int port, Path data) throws IOException, InterruptedException {
        Files.createDirectories(data);
        // Sessions of services that are killed end after two ticks, which is what makes their entries go.
        ZooKeeperServer server = new ZooKeeperServer(data.toFile(), data.toFile(), TICK_MILLISECONDS);
        InetSocketAddress address = new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
        ServerCnxnFactory connections = ServerCnxnFactory.createFactory(address, MOST_CONNECTIONS_OF_A_CLIENT);
        connections.startup(server);
        return new Registry(server, connections);
    }

    /** `host:port`, as its clients want it. */
    public String address() {
        return InetAddress.getLoopbackAddress().getHostAddress() + ":" + connections.getLocalPort();
    }

    /** Waits until somebody closes it. */
    public void join() throws InterruptedException {
        connections.join();
    }

    @Override
    public void close() {
        connections.shutdown();
        server.shutdown();
    }
}
