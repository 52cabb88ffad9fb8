package governor.write;

import com.mongodb.MongoException;
import net.bytebuddy.asm.Advice;

/** In MongoDB's driver, where it executes any other command that writes, such as one that makes or drops a collection. */
public final class MongoDbCommandAdvice {

    private MongoDbCommandAdvice() {}

    @Advice.OnMethodEnter
    static void enter(@Advice.Argument(1) String database) {
        if (Writes.isWatched(database)) {
            throw new MongoException(Writes.refusal(database));
        }
    }
}
