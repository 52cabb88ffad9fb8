package governed.caller;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.context.ConfigurableApplicationContext;

class CallerTest {

    private final HttpClient client = HttpClient.newHttpClient();

    @ParameterizedTest
    @ValueSource(strings = {"httpclient3", "httpclient4", "okhttp2", "jdk", "grpc"})
    void callsTheEchoAndHandsNothingOn(String name) throws Exception {
        try (Echo echo = new Echo(0, 0);
                ConfigurableApplicationContext caller = Caller.start(
                        "caller.client=" + name, "caller.echo=" + echo.address(), "caller.echo-grpc=" + echo.grpcAddress())) {
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
        try (Echo echo = new Echo(0, 0)) {
            assertThat(get(echo.address() + Echo.PATH).body()).isEqualTo("blue");
        }
    }

    @Test
    void saysWhichClientsThereAre() {
        assertThatThrownBy(() -> Client.of("curl", "", "")).hasMessageContaining("httpclient3, httpclient4, okhttp2, jdk or grpc");
    }

    private HttpResponse<String> get(String url) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).header("x-tag", "blue").build();
        return client.send(request, HttpResponse.BodyHandlers.ofString());
    }
}
