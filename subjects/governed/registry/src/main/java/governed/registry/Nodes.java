package governed.registry;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;

/** Writes nodes of a registry: rules, mostly. */
public final class Nodes implements AutoCloseable {

    private final CuratorFramework client;

    /** Of the registry at `address` (`host:port`). */
    public Nodes(String address) {
        client = CuratorFrameworkFactory.newClient(address, new RetryOneTime(500));
        client.start();
    }

    /** Sets a node to a text; makes it, and those above it, if it is not there. */
    public void put(String path, String text) throws Exception {
        byte[] data = text.getBytes(StandardCharsets.UTF_8);
        client.create().orSetData().creatingParentsIfNeeded().forPath(path, data);
    }

    /** Removes a node; nothing happens if it is not there. */
    public void remove(String path) throws Exception {
        client.delete().quietly().forPath(path);
    }

    /**
     * A node for every file below a folder: its path is the file's within the folder, its text what is in the file.
     *
     * @return the paths of the nodes
     * @throws IOException if the folder is not there
     */
    public List<String> putAll(Path folder) throws Exception {
        List<Path> files;
        try (Stream<Path> found = Files.walk(folder)) {
            files = found.filter(Files::isRegularFile).sorted().collect(Collectors.toList());
        }
        for (Path file : files) {
            put(pathOf(folder, file), Files.readString(file));
        }
        return files.stream().map(file -> pathOf(folder, file)).collect(Collectors.toList());
    }

    private static String pathOf(Path folder, Path file) {
        return "/" + folder.relativize(file).toString().replace('\\', '/');
    }

    @Override
    public void close() {
        client.close();
    }
}
