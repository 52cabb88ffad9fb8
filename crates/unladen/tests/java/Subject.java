import com.sun.net.httpserver.HttpServer;
import java.lang.invoke.MethodHandles;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;

/** A service whose heap, threads and classes can be made heavier by a known amount: what the tests weigh. */
public final class Subject {
    /** Defined over and over as a hidden class. */
    static final class Template {}

    private static final List<Object> KEPT = new ArrayList<>();
    private static volatile long sink;

    private Subject() {}

    public static void main(String[] arguments) throws Exception {
        int port = option(arguments, "--port", 0);
        int spin = option(arguments, "--spin", 0);
        // Else it waits 40 ms for an acknowledgement between the head and the body of an answer.
        System.setProperty("sun.net.httpserver.nodelay", "true");
        // Objects far smaller than a region of G1, which would round larger ones up.
        for (int kib = 0; kib < 1024 * option(arguments, "--ballast-mib", 0); kib++) {
            KEPT.add(new byte[1024 - 16]);
        }
        for (int number = 0; number < option(arguments, "--threads", 0); number++) {
            Thread thread = new Thread(Subject::sleep, "ballast-" + number);
            thread.setDaemon(true);
            thread.start();
        }
        byte[] template = Subject.class.getResourceAsStream("Subject$Template.class").readAllBytes();
        for (int number = 0; number < option(arguments, "--classes", 0); number++) {
            KEPT.add(MethodHandles.lookup().defineHiddenClass(template, false).lookupClass());
        }
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 128);
        server.createContext("/work", exchange -> {
            work();
            burn(spin);
            byte[] body = "done\n".getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.createContext("/self", exchange -> {
            byte[] body = self().getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.setExecutor(Executors.newFixedThreadPool(4, task -> {
            Thread thread = new Thread(task);
            thread.setDaemon(true);
            return thread;
        }));
        System.gc();
        server.start();
        System.out.println("ready on " + server.getAddress().getPort());
    }

    /** Allocates 256 KiB that nobody keeps. */
    private static void work() {
        long sum = 0;
        for (int part = 0; part < 64; part++) {
            byte[] garbage = new byte[4096];
            garbage[part] = (byte) part;
            sum += garbage[part];
        }
        sink += sum;
    }

    /** Something that a profile can find by its name. */
    private static void burn(int rounds) {
        long value = sink;
        for (int round = 0; round < rounds; round++) {
            value = value * 6364136223846793005L + 1442695040888963407L;
        }
        sink = value;
    }

    /** What the JVM says of itself. */
    private static String self() {
        System.gc();
        long collections = 0;
        long collecting = 0;
        for (var collector : ManagementFactory.getGarbageCollectorMXBeans()) {
            collections += collector.getCollectionCount();
            collecting += collector.getCollectionTime();
        }
        return "heap " + ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
            + "\nclasses " + ManagementFactory.getClassLoadingMXBean().getLoadedClassCount()
            + "\nthreads " + ManagementFactory.getThreadMXBean().getThreadCount()
            + "\ncollections " + collections
            + "\ncollecting_ms " + collecting + "\n";
    }

    private static void sleep() {
        try {
            Thread.sleep(Long.MAX_VALUE);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private static int option(String[] arguments, String name, int otherwise) {
        for (int at = 0; at + 1 < arguments.length; at++) {
            if (arguments[at].equals(name)) {
                return Integer.parseInt(arguments[at + 1]);
            }
        }
        return otherwise;
    }
}
