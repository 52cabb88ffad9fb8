package governor.write;

import static net.bytebuddy.matcher.ElementMatchers.isBridge;
import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.not;
import static net.bytebuddy.matcher.ElementMatchers.takesArgument;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import governor.Advised;
import governor.Behaviour;
import governor.rules.RuleText;
import java.util.Set;

/**
 * Databases that can only be read, in the drivers of MariaDB (3), PostgreSQL (42) and MongoDB (4.11, the one that waits). The rule:
 * {@code databases=shop,other}.
 */
public final class WriteProhibition implements Behaviour {

    private static final String MARIADB = "org.mariadb.jdbc.client.impl.StandardClient";
    private static final String MONGODB = "com.mongodb.internal.operation.";
    private static final String POSTGRESQL = "org.postgresql.core.v3.QueryExecutorImpl";

    @Override
    public String name() {
        return "write";
    }

    @Override
    public void rule(RuleText text) {
        Set<String> databases = Set.of();
        if (text != null) {
            databases = text.lowerNames("databases");
            text.end();
        }
        Writes.prohibited = databases;
    }

    @Override
    public void install(Advised advised) {
        // The shorter ones call these.
        advised.add(MARIADB, named("execute").and(takesArguments(8)), "governor.write.MariaDbAdvice");
        advised.add(MARIADB, named("executePipeline").and(takesArguments(8)), "governor.write.MariaDbBatchAdvice");
        advised.add(
                POSTGRESQL,
                named("execute").and(takesArguments(7)).and(takesArgument(0, named("org.postgresql.core.Query"))),
                "governor.write.PostgreSqlAdvice");
        advised.add(
                POSTGRESQL,
                named("execute").and(takesArguments(7)).and(takesArgument(0, named("[Lorg.postgresql.core.Query;"))),
                "governor.write.PostgreSqlBatchAdvice");
        advised.add(
                MONGODB + "MixedBulkWriteOperation",
                named("execute").and(takesArguments(1)).and(not(isBridge())),
                "governor.write.MongoDbBulkAdvice");
        // Those that read have another binding.
        advised.add(
                MONGODB + "SyncOperationHelper",
                named("executeCommand").or(named("executeRetryableWrite"))
                        .and(takesArgument(0, named("com.mongodb.internal.binding.WriteBinding")))
                        .and(takesArgument(1, String.class)),
                "governor.write.MongoDbCommandAdvice");
    }
}
