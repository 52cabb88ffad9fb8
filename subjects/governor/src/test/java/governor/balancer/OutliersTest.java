package governor.balancer;

import static org.assertj.core.api.Assertions.assertThat;

import governor.rules.RuleText;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;
import org.junit.jupiter.api.Test;

class OutliersTest {

    private static final long SECOND = 1_000_000_000L;
    private static final List<String> ALL = List.of("a:1", "b:1", "c:1");

    private final AtomicLong clock = new AtomicLong(-5 * SECOND);
    private final Outliers outliers = new Outliers(clock::get);
    private final List<String> told = new ArrayList<>();
    private RemovalRule rule = RemovalRule.of(RuleText.parse("window=10\nerrors=0.5\ncalls=4\nmost=0.7\nrest=30"));

    private List<String> keep() {
        return outliers.keep(ALL, rule, Function.identity(), told::add);
    }

    private void calls(String instance, int good, int bad) {
        for (int call = 0; call < good; call++) {
            outliers.called(instance, false);
        }
        for (int call = 0; call < bad; call++) {
            outliers.called(instance, true);
        }
    }

    @Test
    void takesOutWhoFailsTooOften() {
        calls("a:1", 3, 3);
        calls("b:1", 3, 2);
        calls("c:1", 0, 3);
        assertThat(keep()).containsExactly("b:1", "c:1");
        assertThat(told).containsExactly("a:1");
    }

    @Test
    void bringsItBackWithAClearName() {
        calls("a:1", 0, 4);
        assertThat(keep()).doesNotContain("a:1");
        clock.addAndGet(29 * SECOND);
        assertThat(keep()).doesNotContain("a:1");
        clock.addAndGet(SECOND);
        assertThat(keep()).isEqualTo(ALL);
        calls("a:1", 0, 3);
        assertThat(keep()).isEqualTo(ALL);
        calls("a:1", 0, 1);
        assertThat(keep()).doesNotContain("a:1");
        assertThat(told).containsExactly("a:1", "a:1");
    }

    @Test
    void forgetsWhatIsOlderThanTheWindow() {
        calls("a:1", 0, 3);
        clock.addAndGet(10 * SECOND);
        calls("a:1", 0, 3);
        assertThat(keep()).isEqualTo(ALL);
        clock.addAndGet(9 * SECOND);
        calls("a:1", 0, 1);
        assertThat(keep()).doesNotContain("a:1");
    }

    @Test
    void leavesSome() {
        ALL.forEach(instance -> calls(instance, 0, 10));
        assertThat(keep()).as("two of three are 0.67").hasSize(1);
        assertThat(keep()).hasSize(1);
        rule = RemovalRule.of(RuleText.parse("most=1\ncalls=4"));
        assertThat(keep()).as("one stays whatever the rule says").hasSize(1);
    }

    @Test
    void takesOutNobodyWhereNobodyMayGo() {
        rule = RemovalRule.of(RuleText.parse("most=0.3"));
        calls("a:1", 0, 10);
        assertThat(keep()).isEqualTo(ALL);
    }
}
