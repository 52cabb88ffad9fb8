package governed.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RegistryTest {

    @TempDir
    Path folder;

    @Test
    void keepsNodesOnLoopback() throws Exception {
        try (Registry registry = Registry.start(0, folder.resolve("data"));
                Nodes nodes = new Nodes(registry.address());
                CuratorFramework client = client(registry)) {
            assertTrue(registry.address().startsWith("127.0.0.1:"), registry.address());
            nodes.put("/rules/router", "header=x-version");
            assertEquals("header=x-version", text(client, "/rules/router"));
            nodes.put("/rules/router", "header=x-other");
            assertEquals("header=x-other", text(client, "/rules/router"));
            nodes.remove("/rules/router");
            assertNull(client.checkExists().forPath("/rules/router"));
            nodes.remove("/rules/router");
        }
    }

    @Test
    void makesANodeOfEveryFile() throws Exception {
        Path seeds = Files.createDirectories(folder.resolve("seeds/app=default&environment=/deep")).getParent();
        Files.writeString(seeds.resolve("deep/rule"), "a: 1\n");
        Files.writeString(folder.resolve("seeds/top"), "");
        try (Registry registry = Registry.start(0, folder.resolve("data"));
                Nodes nodes = new Nodes(registry.address());
                CuratorFramework client = client(registry)) {
            List<String> made = nodes.putAll(folder.resolve("seeds"));
            assertEquals(List.of("/app=default&environment=/deep/rule", "/top"), made);
            assertEquals("a: 1\n", text(client, "/app=default&environment=/deep/rule"));
            assertEquals("", text(client, "/top"));
        }
    }

    private static CuratorFramework client(Registry registry) {
        CuratorFramework client = CuratorFrameworkFactory.newClient(registry.address(), new RetryOneTime(500));
        client.start();
        return client;
    }

    private static String text(CuratorFramework client, String path) throws Exception {
        return new String(client.getData().forPath(path), StandardCharsets.UTF_8);
    }
}
