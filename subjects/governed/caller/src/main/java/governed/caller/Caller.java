package governed.caller;

import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;

/** The service, and the echo that it calls: see {@link #USAGE}. */
@SpringBootApplication
public class Caller {

    private static final String USAGE =
            "caller-app.jar         the service at PORT: calls ECHO (http://…), or ECHO_GRPC (host:port), by the library CLIENT\n"
                    + "caller-app.jar echo    what it calls, at PORT and, for gRPC, at GRPC_PORT";

    public static void main(String[] arguments) throws Exception {
        switch (String.join(" ", arguments)) {
            case "" -> start();
            case "echo" -> {
                Echo echo = new Echo(port("PORT"), port("GRPC_PORT"));
                Runtime.getRuntime().addShutdownHook(new Thread(echo::close));
                System.out.println("echo: listens on " + echo.address() + " and " + echo.grpcAddress());
                new CountDownLatch(1).await();
            }
            default -> {
                System.err.println(USAGE);
                System.exit(2);
            }
        }
    }

    private static int port(String name) {
        return Optional.ofNullable(System.getenv(name))
                .map(Integer::parseInt)
                .orElseThrow(() -> new IllegalArgumentException(name + " is not set\n" + USAGE));
    }

    /** Starts the service; more settings as Spring's `key=value`, before those of the environment. */
    public static ConfigurableApplicationContext start(String... settings) {
        String[] arguments = Arrays.stream(settings).map(setting -> "--" + setting).toArray(String[]::new);
        return new SpringApplicationBuilder(Caller.class).properties("spring.config.name=caller").run(arguments);
    }

    @Bean(destroyMethod = "close")
    Client client(
            @Value("${caller.client}") String name,
            @Value("${caller.echo}") String echo,
            @Value("${caller.echo-grpc}") String grpc) {
        return Client.of(name, echo, grpc);
    }
}
