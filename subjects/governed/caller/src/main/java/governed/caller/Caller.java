package governed.caller;

import java.util.Arrays;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringBootConfiguration;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.Environment;

/** The service, and the echo that it calls: see {@link #USAGE}. */
// Without a search for beans: those of ServiceComb are for a context of its own.
@SpringBootConfiguration
@EnableAutoConfiguration
@Import(Calls.class)
public class Caller {

    private static final String USAGE =
            "caller-app.jar         the service at PORT: calls the echo at ECHO_HTTP, ECHO_GRPC, ECHO_DUBBO, ECHO_SOFARPC or\n"
                    + "                       ECHO_SERVICECOMB (host:port), by the library CLIENT\n"
                    + "caller-app.jar echo    what it calls, at HTTP_PORT, GRPC_PORT, DUBBO_PORT, SOFARPC_PORT and SERVICECOMB_PORT";

    public static void main(String[] arguments) throws Exception {
        switch (String.join(" ", arguments)) {
            case "" -> start();
            case "echo" -> {
                Echo echo = new Echo(side -> port(side.name() + "_PORT"));
                Runtime.getRuntime().addShutdownHook(new Thread(echo::close));
                System.out.println("echo: listens on " + Arrays.stream(Side.values()).map(echo::address).collect(Collectors.joining(", ")));
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
    Client client(@Value("${caller.client}") String name, Environment environment) {
        return Client.of(name, side -> environment.getRequiredProperty(side.setting()));
    }
}
