package governor.rules;

import static org.assertj.core.api.Assertions.assertThat;

import governed.registry.Nodes;
import governed.registry.Registry;
import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RuleWatchTest {

    @TempDir
    Path folder;

    private final BlockingQueue<String> told = new LinkedBlockingQueue<>();

    @Test
    void tellsRulesAsTheyComeAndGo() throws Exception {
        try (Registry registry = Registry.start(0, folder); Nodes nodes = new Nodes(registry.address())) {
            nodes.put("/governor/router", "a=1");
            nodes.put("/elsewhere/router", "b=1");
            try (RuleWatch watch = watch(registry.address())) {
                assertThat(next()).isEqualTo("router a=1");
                assertThat(next()).isEqualTo("read");
                nodes.put("/governor/router", "a=2");
                assertThat(next()).isEqualTo("router a=2");
                nodes.put("/governor/removal", "");
                assertThat(next()).isEqualTo("removal ");
                nodes.remove("/governor/router");
                assertThat(next()).isEqualTo("router null");
            }
        }
    }

    @Test
    void isReadyWithoutAnyRule() throws Exception {
        try (Registry registry = Registry.start(0, folder); RuleWatch watch = watch(registry.address())) {
            assertThat(next()).isEqualTo("read");
        }
    }

    @Test
    void waitsForARegistryThatComesLater() throws Exception {
        int port;
        try (Registry registry = Registry.start(0, folder.resolve("first"))) {
            port = Integer.parseInt(registry.address().split(":")[1]);
        }
        try (RuleWatch watch = watch("127.0.0.1:" + port)) {
            assertThat(told.poll(500, TimeUnit.MILLISECONDS)).isNull();
            try (Registry registry = Registry.start(port, folder.resolve("second"));
                    Nodes nodes = new Nodes(registry.address())) {
                nodes.put("/governor/router", "a=1");
                assertThat(java.util.List.of(next(), next())).contains("router a=1");
            }
        }
    }

    private RuleWatch watch(String address) {
        return new RuleWatch(address, "/governor", (name, text) -> told.add(name + " " + text), () -> told.add("read"));
    }

    private String next() throws InterruptedException {
        return told.poll(20, TimeUnit.SECONDS);
    }
}
