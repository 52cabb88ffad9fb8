package governed.proof;

import static org.assertj.core.api.Assertions.assertThat;

import governed.caller.Caller;
import governed.caller.Echo;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.ConfigurableApplicationContext;

/** Tag transmission, by every client library: the echo says what has arrived. */
class TagProof {

    private static final HttpClient CLIENT = HttpClient.newHttpClient();
    private static Bench bench;
    private static Echo echo;

    @BeforeAll
    static void start(@TempDir Path folder) throws Exception {
        bench = new Bench(folder);
        echo = new Echo(side -> 0);
    }

    @AfterAll
    static void stop() throws Exception {
        echo.close();
        bench.close();
    }

    @AfterEach
    void noRule() throws Exception {
        bench.noRule("tags");
    }

    @ParameterizedTest
    @ValueSource(strings = {"httpclient3", "httpclient4", "okhttp2", "jdk", "grpc", "dubbo", "sofarpc", "servicecomb"})
    void tagsArrive(String client) throws Exception {
        try (ConfigurableApplicationContext caller = Caller.start(settings(client))) {
            String url = "http://127.0.0.1:" + caller.getEnvironment().getProperty("local.server.port") + "/call";
            assertThat(seen(url, "blue")).as("without a rule").isEqualTo("none");
            bench.rule("tags", "headers=x-tag\n");
            Bench.await("the tag arrives", () -> seen(url, "blue").equals("blue"));
            for (int call = 0; call < 5; call++) {
                assertThat(seen(url, "green")).isEqualTo("green");
                assertThat(seen(url, null)).as("of a request without a tag").isEqualTo("none");
            }
            bench.rule("tags", "headers=x-another\n");
            Bench.await("it no longer does", () -> seen(url, "blue").equals("none"));
        }
    }

    private static String[] settings(String client) {
        // What is in the class path for the sake of the other proofs stays out.
        Stream<String> others = Stream.of(
                "caller.client=" + client,
                "spring.cloud.zookeeper.enabled=false",
                Bench.WITHOUT_DATABASES);
        return Stream.concat(others, echo.settings()).toArray(String[]::new);
    }

    private static String seen(String url, String tag) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url));
        if (tag != null) {
            request.header("x-tag", tag);
        }
        var answer = CLIENT.send(request.build(), java.net.http.HttpResponse.BodyHandlers.ofString());
        assertThat(answer.statusCode()).isEqualTo(200);
        return answer.headers().firstValue("x-seen").orElse("");
    }
}
