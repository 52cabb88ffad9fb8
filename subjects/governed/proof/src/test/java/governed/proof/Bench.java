package governed.proof;

import static org.assertj.core.api.Assertions.assertThat;

import governed.registry.Nodes;
import governed.registry.Registry;
import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** What the proofs stand on: the registry that the agent of this JVM has been asking since it started, and servers from `studies/parts`. */
final class Bench implements AutoCloseable {

    /** For applications beside which others have databases in the class path. */
    static final String WITHOUT_DATABASES = "spring.autoconfigure.exclude=org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration,"
            + "org.springframework.boot.autoconfigure.mongo.MongoAutoConfiguration";

    private static final long PATIENCE_NANOSECONDS = 60_000_000_000L;

    private final Registry registry;
    private final Nodes nodes;
    private final List<Process> started = new ArrayList<>();

    Bench(Path folder) throws Exception {
        registry = Registry.start(Integer.getInteger("registry.port"), folder);
        nodes = new Nodes(registry.address());
    }

    String registry() {
        return registry.address();
    }

    /** Sets the rule of a behaviour. */
    void rule(String behaviour, String text) throws Exception {
        nodes.put("/governor/" + behaviour, text);
    }

    void noRule(String behaviour) throws Exception {
        nodes.remove("/governor/" + behaviour);
    }

    /** Starts a server from `studies/parts` in a folder that goes with it; ready when its last port answers. */
    void start(String part, Object... arguments) throws Exception {
        Path parts = Path.of(System.getProperty("parts")).toRealPath();
        List<String> command = new ArrayList<>(List.of(parts + "/with-folder.sh", parts + "/" + part));
        for (Object argument : arguments) {
            command.add(argument.toString());
        }
        Path log = Files.createTempFile("part", ".log");
        log.toFile().deleteOnExit();
        Process process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
        started.add(process);
        await(part + " answers", () -> {
            assertThat(process.isAlive()).as(() -> part + " has ended: " + read(log)).isTrue();
            return answers((Integer) arguments[arguments.length - 1]);
        });
    }

    private static String read(Path log) {
        try {
            return Files.readString(log);
        } catch (IOException unreadable) {
            return unreadable.toString();
        }
    }

    private static boolean answers(int port) {
        try (Socket socket = new Socket("127.0.0.1", port)) {
            return socket.isConnected();
        } catch (IOException notYet) {
            return false;
        }
    }

    static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }

    interface Condition {
        boolean holds() throws Exception;
    }

    static void await(String what, Condition condition) throws Exception {
        long until = System.nanoTime() + PATIENCE_NANOSECONDS;
        while (!condition.holds()) {
            assertThat(System.nanoTime() - until).as(what).isNegative();
            Thread.sleep(50);
        }
    }

    @Override
    public void close() throws InterruptedException {
        Collections.reverse(started);
        for (Process process : started) {
            process.destroy();
            if (!process.waitFor(20, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        }
        nodes.close();
        registry.close();
    }
}
