package governor.write;

import com.mongodb.MongoException;
import com.mongodb.internal.operation.MixedBulkWriteOperation;
import net.bytebuddy.asm.Advice;

/** In MongoDB's driver, where documents are inserted, changed and removed, one or many. */
public final class MongoDbBulkAdvice {

    private MongoDbBulkAdvice() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.This MixedBulkWriteOperation operation) {
        String database = operation.getNamespace().getDatabaseName();
        if (Writes.isWatched(database)) {
            throw new MongoException(Writes.refusal(database));
        }
    }
}
