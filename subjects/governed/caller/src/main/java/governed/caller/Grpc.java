package governed.caller;

import io.grpc.CallOptions;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** gRPC; the messages are texts, so that no protobuf is needed. */
final class Grpc implements Client {

    static final String SERVICE = "echo.Echo";
    static final Metadata.Key<String> TAG_KEY = Metadata.Key.of(TAG, Metadata.ASCII_STRING_MARSHALLER);
    static final MethodDescriptor<String, String> METHOD = MethodDescriptor.newBuilder(new Text(), new Text())
            .setType(MethodDescriptor.MethodType.UNARY)
            .setFullMethodName(MethodDescriptor.generateFullMethodName(SERVICE, "Tag"))
            .build();

    private final ManagedChannel channel;

    Grpc(String target) {
        channel = NettyChannelBuilder.forTarget(target).usePlaintext().build();
    }

    @Override
    public String call() {
        return ClientCalls.blockingUnaryCall(channel, METHOD, CallOptions.DEFAULT, "");
    }

    @Override
    public void close() {
        channel.shutdownNow();
    }

    private static final class Text implements MethodDescriptor.Marshaller<String> {
        @Override
        public InputStream stream(String text) {
            return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public String parse(InputStream bytes) {
            try {
                return new String(bytes.readAllBytes(), StandardCharsets.UTF_8);
            } catch (IOException broken) {
                throw new UncheckedIOException(broken);
            }
        }
    }
}
