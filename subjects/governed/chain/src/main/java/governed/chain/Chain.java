package governed.chain;

import org.apache.http.client.HttpClient;
import org.apache.http.impl.client.HttpClientBuilder;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.cloud.client.loadbalancer.LoadBalanced;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.http.client.HttpComponentsClientHttpRequestFactory;
import org.springframework.web.client.RestTemplate;

/** One service of the chain: `chain-app.jar consumer`, `provider` or `data`. */
@SpringBootApplication
@EnableConfigurationProperties(Settings.class)
public class Chain {

    private static final int MOST_CONNECTIONS = 200;

    public static void main(String[] arguments) {
        if (arguments.length != 1) {
            System.err.println("chain-app.jar consumer|provider|data");
            System.exit(2);
        }
        try {
            start(Role.of(arguments[0]));
        } catch (IllegalArgumentException unknown) {
            System.err.println(unknown.getMessage());
            System.exit(2);
        }
    }

    /** Starts a service; more settings as Spring's `key=value`, before those of the environment. */
    public static ConfigurableApplicationContext start(Role role, String... settings) {
        String[] arguments = new String[settings.length + 1];
        arguments[0] = "--chain.role=" + role.written();
        for (int at = 0; at < settings.length; at++) {
            arguments[at + 1] = "--" + settings[at];
        }
        return new SpringApplicationBuilder(Chain.class).properties("spring.config.name=chain").run(arguments);
    }

    /** Calls a service by its name in the registry, one instance after the other. */
    @Bean
    @LoadBalanced
    public RestTemplate services(Settings settings) {
        // A call that failed is not made again: who asks for outliers wants to see it fail.
        HttpClient client = HttpClientBuilder.create()
                .setMaxConnTotal(MOST_CONNECTIONS)
                .setMaxConnPerRoute(MOST_CONNECTIONS)
                .disableAutomaticRetries()
                .build();
        HttpComponentsClientHttpRequestFactory requests = new HttpComponentsClientHttpRequestFactory(client);
        requests.setConnectTimeout((int) settings.timeout().toMillis());
        requests.setReadTimeout((int) settings.timeout().toMillis());
        return new RestTemplate(requests);
    }
}
