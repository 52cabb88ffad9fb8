package governor.rules;

import java.nio.charset.StandardCharsets;
import java.util.function.BiConsumer;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.retry.RetryForever;

/** The nodes right below one node of a ZooKeeper, told as they come, change and go. */
public final class RuleWatch implements AutoCloseable {

    private static final int SESSION_MILLISECONDS = 10_000;
    private static final int CONNECTION_MILLISECONDS = 5_000;
    private static final int RETRY_MILLISECONDS = 500;

    private final CuratorFramework client;
    private final CuratorCache nodes;

    /**
     * Starts to watch; the registry may come later.
     *
     * @param address `host:port` of the ZooKeeper
     * @param root the node above
     * @param told is told the name of a node and its text, or null when it has gone
     * @param read is run once, when all that was there at first has been told
     */
    public RuleWatch(String address, String root, BiConsumer<String, String> told, Runnable read) {
        client = CuratorFrameworkFactory.newClient(
                address, SESSION_MILLISECONDS, CONNECTION_MILLISECONDS, new RetryForever(RETRY_MILLISECONDS));
        client.start();
        nodes = CuratorCache.build(client, root);
        nodes.listenable().addListener(CuratorCacheListener.builder()
                .forCreates(node -> tell(root, node, told))
                .forChanges((before, node) -> tell(root, node, told))
                .forDeletes(node -> tellGone(root, node, told))
                .forInitialized(read)
                .build());
        nodes.start();
    }

    private static void tell(String root, ChildData node, BiConsumer<String, String> told) {
        if (isBelow(root, node)) {
            byte[] data = node.getData();
            told.accept(name(root, node), data == null ? "" : new String(data, StandardCharsets.UTF_8));
        }
    }

    private static void tellGone(String root, ChildData node, BiConsumer<String, String> told) {
        if (isBelow(root, node)) {
            told.accept(name(root, node), null);
        }
    }

    private static boolean isBelow(String root, ChildData node) {
        return node.getPath().startsWith(root + "/");
    }

    private static String name(String root, ChildData node) {
        return node.getPath().substring(root.length() + 1);
    }

    @Override
    public void close() {
        nodes.close();
        client.close();
    }
}
