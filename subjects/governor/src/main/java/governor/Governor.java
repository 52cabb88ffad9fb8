package governor;

import java.io.IOException;
import java.io.InputStream;
import java.lang.instrument.Instrumentation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;

/**
 * The agent's entry: {@code -javaagent:governor.jar=registry=HOST:PORT}, see {@link Options}.
 *
 * <p>Whatever goes wrong here is said on standard output and the application runs on, ungoverned: a line {@code governor: loaded} is
 * there only if the agent works.
 */
public final class Governor {

    /** What classes of the JDK itself are to see, so the loader of those must have it. */
    private static final String[] OF_THE_JDK = {"governor/boot/Tags.class"};

    /** The behaviour that changes a class of the JDK. */
    private static final String JDK_BEHAVIOUR = "tags";

    private Governor() {}

    /** Called by the JVM before the application's `main`. */
    public static void premain(String arguments, Instrumentation instrumentation) {
        try {
            Options options = Options.parse(arguments);
            // The JVM shares fewer classes from its archive then, so it is not done in vain.
            if (options.behaviours().isEmpty() || options.behaviours().contains(JDK_BEHAVIOUR)) {
                shareWithTheJdk(instrumentation);
            }
            Start.start(options, instrumentation);
        } catch (Throwable failed) {
            Say.line("not loaded: " + failed + "; the application runs on without it");
        }
    }

    private static void shareWithTheJdk(Instrumentation instrumentation) throws IOException {
        Path jar = Files.createTempFile("governor-", ".jar");
        jar.toFile().deleteOnExit();
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar))) {
            for (String name : OF_THE_JDK) {
                out.putNextEntry(new JarEntry(name));
                try (InputStream in = Governor.class.getClassLoader().getResourceAsStream(name)) {
                    if (in == null) {
                        throw new IOException(name + " is not in the agent's jar: build it again");
                    }
                    in.transferTo(out);
                }
                out.closeEntry();
            }
        }
        instrumentation.appendToBootstrapClassLoaderSearch(new JarFile(jar.toFile()));
    }
}
