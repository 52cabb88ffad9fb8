package governed.proof;

import static org.assertj.core.api.Assertions.assertThat;

import governed.chain.Chain;
import governed.chain.Role;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.context.ConfigurableApplicationContext;

/** Label routing and removal of outliers: seen in the path that the answer shows, with rules that change while the services run. */
class ChainProof {

    private static final List<String> LABELS = List.of("v1", "v2", "v3");
    private static final List<ConfigurableApplicationContext> STARTED = new ArrayList<>();
    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static Bench bench;
    private static int consumer;

    @BeforeAll
    static void start(@TempDir Path folder) throws Exception {
        bench = new Bench(folder);
        start(Role.DATA);
        for (String label : LABELS) {
            start(Role.PROVIDER, "chain.label=" + label, "chain.stalled=v3", "chain.timeout=300ms");
        }
        consumer = start(Role.CONSUMER, "chain.instances=3", "chain.timeout=300ms");
        Bench.await("the consumer knows three providers", () -> get("/ready", null).statusCode() == 200);
    }

    @AfterAll
    static void stop() throws Exception {
        STARTED.forEach(ConfigurableApplicationContext::close);
        bench.close();
    }

    @AfterEach
    void noRules() throws Exception {
        bench.noRule("router");
        bench.noRule("removal");
    }

    @Test
    void routesByLabelWhileThereIsARule() throws Exception {
        assertThat(providersOf(6, "v1")).as("no rule").isEqualTo(Map.of("v1", 2, "v2", 2, "v3", 2));

        bench.rule("router", "service=provider\nheader=x-version\nlabel=version\n");
        Bench.await("v1 only", () -> providersOf(3, "v1").equals(Map.of("v1", 3)));
        assertThat(providersOf(20, "v1")).isEqualTo(Map.of("v1", 20));
        assertThat(providersOf(20, "v2")).isEqualTo(Map.of("v2", 20));
        assertThat(providersOf(6, null)).as("without the header").hasSize(3);
        assertThat(providersOf(6, "v9")).as("a version that nobody has").hasSize(3);

        bench.rule("router", "service=provider\nheader=x-other\nlabel=version\n");
        Bench.await("all of them", () -> providersOf(6, "v1").size() == 3);
        bench.rule("router", "service=provider\nheader=x-version\nlabel=version\n");
        Bench.await("v2 only", () -> providersOf(6, "v2").equals(Map.of("v2", 6)));
        bench.noRule("router");
        Bench.await("all of them", () -> providersOf(6, "v2").size() == 3);
    }

    @Test
    void keepsTheListWhenItIsReadAnew() throws Exception {
        bench.rule("router", "service=provider\nheader=x-version\nlabel=version\n");
        Bench.await("v1 only", () -> providersOf(3, "v1").equals(Map.of("v1", 3)));
        // The balancer's cache holds for a second; then its list is made on another thread.
        for (int time = 0; time < 4; time++) {
            Thread.sleep(600);
            assertThat(providersOf(3, "v2")).isEqualTo(Map.of("v2", 3));
        }
    }

    @Test
    void takesOutAnInstanceThatFails() throws Exception {
        assertThat(providersOf(9, null)).containsEntry("v3", 3);
        bench.rule("removal", "service=provider\ncalls=3\nwindow=20\nerrors=0.9\nmost=0.4\nrest=5\n");
        Bench.await("v3 is out", () -> !providersOf(6, null).containsKey("v3"));
        assertThat(providersOf(20, null)).isEqualTo(Map.of("v1", 10, "v2", 10));
        // After its rest it is called again, and goes again.
        Bench.await("v3 is tried again", () -> providersOf(3, null).containsKey("v3"));
        Bench.await("v3 is out again", () -> !providersOf(6, null).containsKey("v3"));
        bench.noRule("removal");
        Bench.await("v3 is back", () -> providersOf(3, null).containsKey("v3"));
    }

    /** How often which provider was asked, in so many requests. One that is stalled shows by an answer that failed. */
    private static Map<String, Integer> providersOf(int requests, String version) throws Exception {
        Map<String, Integer> counts = new TreeMap<>();
        for (int request = 0; request < requests; request++) {
            HttpResponse<String> answer = get("/chain", version);
            Predicate<String> asked = label -> answer.body().contains("provider[" + label + "@");
            String who = LABELS.stream().filter(asked).findFirst().orElse("v3");
            counts.merge(who, 1, Integer::sum);
        }
        return counts;
    }

    private static int start(Role role, String... settings) {
        List<String> all = new ArrayList<>(List.of(settings));
        // What is in the class path for the sake of the other proofs stays out.
        all.add(Bench.WITHOUT_DATABASES);
        all.add("spring.cloud.zookeeper.connect-string=" + bench.registry());
        ConfigurableApplicationContext context = Chain.start(role, all.toArray(new String[0]));
        STARTED.add(context);
        return Integer.parseInt(context.getEnvironment().getProperty("local.server.port"));
    }

    private static HttpResponse<String> get(String path, String version) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + consumer + path));
        if (version != null) {
            request.header("x-version", version);
        }
        return CLIENT.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }
}
