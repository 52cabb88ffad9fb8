package governed.caller;

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
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Optional;

/** The echo's side for gRPC. */
final class GrpcEcho implements Echo.Listener {

    private static final Context.Key<String> TAG = Context.key(Client.TAG);

    private final Server server;

    GrpcEcho(int port) throws IOException {
        ServerServiceDefinition service = ServerServiceDefinition.builder(Grpc.SERVICE)
                .addMethod(Grpc.METHOD, ServerCalls.asyncUnaryCall((request, answer) -> {
                    answer.onNext(TAG.get());
                    answer.onCompleted();
                }))
                .build();
        server = NettyServerBuilder.forAddress(new InetSocketAddress(InetAddress.getLoopbackAddress(), port))
                .addService(service)
                .intercept(new Reads())
                .build()
                .start();
    }

    @Override
    public int port() {
        return server.getPort();
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
        server.shutdownNow();
    }
}
