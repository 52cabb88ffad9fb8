package governed.store;

import java.util.Arrays;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;

/** The service, and two programs beside it that need no agent: see {@link #USAGE}. */
@SpringBootApplication
public class Store {

    private static final String USAGE =
            "store-app.jar            the service at PORT; DATABASE is a JDBC URL with the user in it\n"
                    + "store-app.jar prepare    makes the tables of DATABASE as they are at first\n"
                    + "store-app.jar count      rows of DATABASE for each insert that the service at STORE (http://…) took, as JSON";

    public static void main(String[] arguments) throws Exception {
        String program = String.join(" ", arguments);
        switch (program) {
            case "" -> start();
            case "prepare" -> {
                Tables.prepare(environment("DATABASE"));
            }
            case "count" -> System.out.println(Count.json(environment("DATABASE"), environment("STORE")));
            default -> {
                System.err.println(USAGE);
                System.exit(2);
            }
        }
    }

    /** Starts the service; more settings as Spring's `key=value`, before those of the environment. */
    public static ConfigurableApplicationContext start(String... settings) {
        String[] arguments = Arrays.stream(settings).map(setting -> "--" + setting).toArray(String[]::new);
        return new SpringApplicationBuilder(Store.class).properties("spring.config.name=store").run(arguments);
    }

    private static String environment(String name) {
        String value = System.getenv(name);
        if (value == null) {
            System.err.println(name + " is not set\n" + USAGE);
            System.exit(2);
        }
        return value;
    }
}
