package governed.caller;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.grpc.Context;
import io.grpc.Contexts;
import io.grpc.Metadata;
import io.grpc.Server;
import io.grpc.ServerCall;
import io.grpc.ServerCallHandler;
import io.grpc.ServerInterceptor;
import io.grpc.ServerServiceDefinition;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.ServerCalls;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** Says which tag a call has brought, over HTTP and over gRPC, on 127.0.0.1. It carries no agent. */
public final class Echo implements AutoCloseable {

    static final String PATH = "/tag";

    private static final int THREADS = 32;
    private static final Context.Key<String> TAG = Context.key(Client.TAG);

    private final ExecutorService threads = Executors.newFixedThreadPool(THREADS, work -> {
        Thread thread = new Thread(work, "echo");
        thread.setDaemon(true);
        return thread;
    });
    private final HttpServer http;
    private final Server grpc;

    /** Starts it; 0 takes any free port. */
    public Echo(int port, int grpcPort) throws IOException {
        InetAddress loopback = InetAddress.getLoopbackAddress();
        // More than come at once: who waits in vain for a place there tries again only after a second.
        http = HttpServer.create(new InetSocketAddress(loopback, port), 1024);
        http.setExecutor(threads);
        http.createContext(PATH, Echo::answer);
        http.start();
        ServerServiceDefinition service = ServerServiceDefinition.builder(Grpc.SERVICE)
                .addMethod(Grpc.METHOD, ServerCalls.asyncUnaryCall((request, answer) -> {
                    answer.onNext(TAG.get());
                    answer.onCompleted();
                }))
                .build();
        grpc = NettyServerBuilder.forAddress(new InetSocketAddress(loopback, grpcPort))
                .addService(service)
                .intercept(new Reads())
                .build()
                .start();
    }

    /** `http://host:port`. */
    public String address() {
        return "http://" + InetAddress.getLoopbackAddress().getHostAddress() + ":" + http.getAddress().getPort();
    }

    /** `host:port` of its gRPC side. */
    public String grpcAddress() {
        return InetAddress.getLoopbackAddress().getHostAddress() + ":" + grpc.getPort();
    }

    private static void answer(HttpExchange exchange) throws IOException {
        String tag = Optional.ofNullable(exchange.getRequestHeaders().getFirst(Client.TAG)).orElse(Client.NONE);
        byte[] bytes = tag.getBytes(StandardCharsets.UTF_8);
        exchange.sendResponseHeaders(200, bytes.length);
        try (OutputStream body = exchange.getResponseBody()) {
            body.write(bytes);
        }
    }

    private static final class Reads implements ServerInterceptor {
        @Override
        public <A, B> ServerCall.Listener<A> interceptCall(ServerCall<A, B> call, Metadata headers, ServerCallHandler<A, B> next) {
            String tag = Optional.ofNullable(headers.get(Grpc.TAG_KEY)).orElse(Client.NONE);
            return Contexts.interceptCall(Context.current().withValue(TAG, tag), call, headers, next);
        }
    }

    @Override
    public void close() {
        http.stop(0);
        grpc.shutdownNow();
        threads.shutdownNow();
    }
}
