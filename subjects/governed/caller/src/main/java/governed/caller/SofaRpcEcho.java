package governed.caller;

import com.alipay.sofa.rpc.config.ProviderConfig;
import com.alipay.sofa.rpc.config.ServerConfig;
import com.alipay.sofa.rpc.core.request.SofaRequest;
import com.alipay.sofa.rpc.core.response.SofaResponse;
import com.alipay.sofa.rpc.filter.Filter;
import com.alipay.sofa.rpc.filter.FilterInvoker;
import java.net.InetAddress;
import java.util.List;
import java.util.Optional;

/** The echo's side for SofaRPC. What goes beside the arguments only a filter can see. */
final class SofaRpcEcho implements Echo.Listener {

    static {
        SofaRpc.configure();
    }

    private static final ThreadLocal<String> SEEN = ThreadLocal.withInitial(() -> Client.NONE);

    private final ServerConfig server;
    private final ProviderConfig<TagService> provider;

    SofaRpcEcho(int port) {
        server = new ServerConfig()
                .setProtocol("bolt")
                .setHost(InetAddress.getLoopbackAddress().getHostAddress())
                .setPort(port)
                .setDaemon(true);
        provider = new ProviderConfig<TagService>()
                .setInterfaceId(TagService.class.getName())
                .setRef(SEEN::get)
                .setFilter(List.of("-providerTracer"))
                .setFilterRef(List.of(new Reads()))
                .setServer(server);
        provider.export();
    }

    @Override
    public int port() {
        return server.getPort();
    }

    @Override
    public void close() {
        provider.unExport();
        server.destroy();
    }

    private static final class Reads extends Filter {
        @Override
        public SofaResponse invoke(FilterInvoker next, SofaRequest request) {
            SEEN.set(Optional.ofNullable((String) request.getRequestProp(Client.TAG)).orElse(Client.NONE));
            return next.invoke(request);
        }
    }
}
