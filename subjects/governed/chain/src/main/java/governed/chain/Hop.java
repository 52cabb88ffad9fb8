package governed.chain;

import java.util.Optional;
import org.springframework.cloud.client.discovery.DiscoveryClient;
import org.springframework.core.env.Environment;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClientException;
import org.springframework.web.client.RestTemplate;

/** One hop of the chain. Its answer is the path that the request has taken: {@code consumer[-@1] -> provider[v2@2] -> data[-@3]}. */
@RestController
public class Hop {

    private static final String ARROW = " -> ";

    private final Settings settings;
    private final Environment environment;
    private final RestTemplate services;
    private final DiscoveryClient registry;

    public Hop(Settings settings, Environment environment, RestTemplate services, DiscoveryClient registry) {
        this.settings = settings;
        this.environment = environment;
        this.services = services;
        this.registry = registry;
    }

    @GetMapping(path = "/chain", produces = MediaType.TEXT_PLAIN_VALUE)
    public ResponseEntity<String> chain() throws InterruptedException {
        if (settings.isStalled()) {
            Thread.sleep(2 * settings.timeout().toMillis());
        }
        Optional<Role> next = settings.role().next();
        if (next.isEmpty()) {
            return ResponseEntity.ok(self());
        }
        try {
            String rest = services.getForObject("http://" + next.get().written() + "/chain", String.class);
            return ResponseEntity.ok(self() + ARROW + rest);
        } catch (RestClientException | IllegalStateException failed) {
            // The balancer says with the latter that it knows nobody.
            String broken = self() + ARROW + next.get().written() + " failed: " + failed.getMessage();
            return ResponseEntity.status(HttpStatus.BAD_GATEWAY).body(broken);
        }
    }

    /** Whether the service can do its work: 503 until the registry knows as many of the next service as there should be. */
    @GetMapping(path = "/ready", produces = MediaType.TEXT_PLAIN_VALUE)
    public ResponseEntity<String> ready() {
        Optional<Role> next = settings.role().next();
        int found = next.map(role -> registry.getInstances(role.written()).size()).orElse(settings.instances());
        HttpStatus status = found < settings.instances() ? HttpStatus.SERVICE_UNAVAILABLE : HttpStatus.OK;
        return ResponseEntity.status(status).body(found + " of " + settings.instances());
    }

    private String self() {
        String port = environment.getProperty("local.server.port");
        return settings.role().written() + "[" + settings.label() + "@" + port + "]";
    }
}
