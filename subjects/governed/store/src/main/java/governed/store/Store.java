package governed.store;

import java.util.Arrays;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration;
import org.springframework.boot.autoconfigure.mongo.MongoAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;

/** The service, and two programs beside it that need no agent: see {@link #USAGE}. */
// It connects by itself, to the database that it is told.
@SpringBootApplication(exclude = {DataSourceAutoConfiguration.class, MongoAutoConfiguration.class})
public class Store {

    private static final String USAGE =
            "store-app.jar            the service at PORT; DATABASE is mariadb://host:port/name, postgresql://… or mongodb://…\n"
                    + "store-app.jar prepare    makes the tables of DATABASE as they are at first\n"
                    + "store-app.jar count      rows of DATABASE for each insert that the service at STORE (http://…) took, as JSON";

    public static void main(String[] arguments) throws Exception {
        String program = String.join(" ", arguments);
        switch (program) {
            case "" -> start();
            case "prepare" -> {
                Database.of(environment("DATABASE")).prepare();
            }
            case "count" -> System.out.println(Count.json(Database.of(environment("DATABASE")), environment("STORE")));
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

    @Bean
    Rows rows(@Value("${store.database}") String url) {
        return Database.of(url).open();
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
