package governed.caller;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.ConfigurableApplicationContext;

class CallerTest {

    private static Echo echo;

    private final HttpClient client = HttpClient.newHttpClient();

    @BeforeAll
    static void start() throws Exception {
        echo = new Echo(side -> 0);
    }

    @AfterAll
    static void stop() {
        echo.close();
    }

    private static String[] settings(String name) {
        return Stream.concat(Stream.of("caller.client=" + name), echo.settings()).toArray(String[]::new);
    }

    @ParameterizedTest
    @ValueSource(strings = {"httpclient3", "httpclient4", "okhttp2", "jdk", "grpc", "dubbo", "sofarpc", "servicecomb"})
    void callsTheEchoAndHandsNothingOn(String name) throws Exception {
        try (ConfigurableApplicationContext caller = Caller.start(settings(name))) {
            String port = caller.getEnvironment().getProperty("local.server.port");
            for (int call = 0; call < 3; call++) {
                HttpResponse<String> answer = get("http://127.0.0.1:" + port + "/call");
                assertThat(answer.statusCode()).isEqualTo(200);
                assertThat(answer.body()).isEqualTo("called");
                assertThat(answer.headers().firstValue("x-seen")).as("it is bare").hasValue("none");
            }
        }
    }

    @Test
    void theEchoSaysWhatItWasTold() throws Exception {
        assertThat(get("http://" + echo.address(Side.HTTP) + HttpEcho.PATH).body()).isEqualTo("blue");
    }

    @Test
    void saysWhichClientsThereAre() {
        assertThatThrownBy(() -> Client.of("curl", side -> "")).hasMessageContaining("jdk, grpc, dubbo, sofarpc or servicecomb");
    }

    private HttpResponse<String> get(String url) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).header("x-tag", "blue").build();
        return client.send(request, HttpResponse.BodyHandlers.ofString());
    }
}
