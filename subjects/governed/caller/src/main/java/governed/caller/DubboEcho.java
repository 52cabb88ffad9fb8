package governed.caller;

import java.util.Optional;
import org.apache.dubbo.config.ProtocolConfig;
import org.apache.dubbo.config.RegistryConfig;
import org.apache.dubbo.config.ServiceConfig;
import org.apache.dubbo.rpc.RpcContext;

/** The echo's side for Dubbo. */
final class DubboEcho implements Echo.Listener {

    private final ServiceConfig<TagService> service = new ServiceConfig<>();
    private final int port;

    DubboEcho(int port) {
        this.port = port;
        ProtocolConfig protocol = new ProtocolConfig("dubbo", port);
        protocol.setHost(Dubbo.LOOPBACK);
        service.setApplication(Dubbo.application("echo"));
        service.setRegistry(new RegistryConfig(RegistryConfig.NO_AVAILABLE));
        service.setProtocol(protocol);
        service.setInterface(TagService.class);
        service.setRef(() -> Optional.ofNullable(RpcContext.getContext().getAttachment(Client.TAG)).orElse(Client.NONE));
        service.export();
    }

    @Override
    public int port() {
        return port;
    }

    @Override
    public void close() {
        service.unexport();
    }
}
