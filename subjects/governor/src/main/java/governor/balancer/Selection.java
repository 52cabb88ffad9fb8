package governor.balancer;

import governor.Say;
import governor.boot.Tags;
import java.util.List;
import java.util.function.Function;

/** What becomes of the list of instances for one request: the rules and the tags of the moment at which it was asked for. */
public final class Selection implements Function<Object, Object> {

    private static final Outliers OUTLIERS = new Outliers(System::nanoTime);
    static volatile RouterRule routerRule;
    static volatile RemovalRule removalRule;

    private final RouterRule router;
    private final String value;
    private final RemovalRule removal;

    private Selection(RouterRule router, String value, RemovalRule removal) {
        this.router = router;
        this.value = value;
        this.removal = removal;
    }

    /** Of a request to a service that the current thread makes; null if all instances are fine. */
    public static Selection of(String service) {
        RouterRule router = routerRule;
        String value = router != null && router.service().equals(service) ? Tags.get(router.header()) : null;
        RemovalRule removal = removalRule;
        if (removal != null && !removal.covers(service)) {
            removal = null;
        }
        return value == null && removal == null ? null : new Selection(router, value, removal);
    }

    /** The instances that may be called, of a list of all of them. */
    @Override
    @SuppressWarnings("unchecked")
    public Object apply(Object all) {
        List<Object> left = (List<Object>) all;
        if (value != null) {
            left = router.choose(left, value, Instances::labels);
        }
        if (removal != null) {
            left = OUTLIERS.keep(left, removal, Instances::name, name -> Say.line("took out " + name));
        }
        return left;
    }

    /** A call of an instance has ended. */
    public static void called(String host, int port, boolean failed) {
        if (removalRule != null) {
            OUTLIERS.called(Instances.name(host, port), failed);
        }
    }
}
