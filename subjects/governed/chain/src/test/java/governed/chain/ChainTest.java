package governed.chain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import governed.registry.Registry;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.context.ConfigurableApplicationContext;

/** All three services and the registry, in one JVM. */
class ChainTest {

    private static final String HOP = "\\[(-|v\\d)@\\d+]";

    @TempDir
    Path folder;

    private final List<ConfigurableApplicationContext> started = new ArrayList<>();
    private final HttpClient client = HttpClient.newHttpClient();

    private Registry registry;

    @BeforeEach
    void startRegistry() throws Exception {
        registry = Registry.start(0, folder);
    }

    @AfterEach
    void stop() {
        // They sign off before it goes; else they would wait for it.
        started.forEach(ConfigurableApplicationContext::close);
        registry.close();
    }

    @Test
    void theAnswerIsThePathOfTheRequest() throws Exception {
        // The first call is slow where others use the machine: the time must be long for it, and v3 takes twice as long.
        start(Role.DATA);
        for (String label : List.of("v1", "v2", "v3")) {
            start(Role.PROVIDER, "chain.label=" + label, "chain.stalled=v3", "chain.timeout=2s");
        }
        int consumer = start(Role.CONSUMER, "chain.instances=3", "chain.timeout=2s");
        awaitReady(consumer);

        List<HttpResponse<String>> answers = new ArrayList<>();
        for (int request = 0; request < 6; request++) {
            answers.add(get(consumer, "/chain"));
        }
        // One after the other; v3 answers too late.
        assertThat(answers).filteredOn(answer -> answer.statusCode() == 200).hasSize(4).allSatisfy(answer ->
                assertThat(answer.body()).matches("consumer" + HOP + " -> provider" + HOP + " -> data" + HOP));
        for (String label : List.of("v1", "v2")) {
            assertThat(answers).filteredOn(answer -> answer.body().contains("provider[" + label + "@")).hasSize(2);
        }
        assertThat(answers).filteredOn(answer -> answer.statusCode() == 502).hasSize(2).allSatisfy(answer ->
                assertThat(answer.body()).contains("provider failed: ").contains("timed out"));
    }

    @Test
    void isNotReadyAlone() throws Exception {
        int consumer = start(Role.CONSUMER);
        assertThat(get(consumer, "/ready").statusCode()).isEqualTo(503);
        assertThat(get(consumer, "/chain").statusCode()).isEqualTo(502);
    }

    @Test
    void knowsItsRoles() {
        assertThat(Role.of("provider")).isEqualTo(Role.PROVIDER);
        assertThat(Role.DATA.next()).isEmpty();
        assertThatThrownBy(() -> Role.of("producer")).hasMessageContaining("consumer, provider or data");
    }

    private int start(Role role, String... settings) {
        List<String> all = new ArrayList<>(List.of(settings));
        all.add("spring.cloud.zookeeper.connect-string=" + registry.address());
        ConfigurableApplicationContext context = Chain.start(role, all.toArray(new String[0]));
        started.add(context);
        return Integer.parseInt(context.getEnvironment().getProperty("local.server.port"));
    }

    private void awaitReady(int port) throws Exception {
        for (int tries = 0; get(port, "/ready").statusCode() != 200; tries++) {
            assertThat(tries).as("tries until it is ready").isLessThan(100);
            Thread.sleep(100);
        }
    }

    private HttpResponse<String> get(int port, String path) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path)).build();
        return client.send(request, HttpResponse.BodyHandlers.ofString());
    }
}
