package governor.boot;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class TagsTest {

    @AfterEach
    void noRules() {
        Tags.route(Set.of());
        Tags.transmit(Set.of());
    }

    @Test
    void handsOnWhatTheRuleNamesAndNothingElse() {
        Tags.route(Set.of("x-version"));
        Tags.transmit(Set.of("x-user", "x-tag"));
        assertThat(Tags.wanted()).containsExactly("x-tag", "x-user", "x-version");
        assertThat(Tags.toTransmit()).isEmpty();
        Map<String, String> around = Tags.enter(Map.of("x-version", "v1", "x-user", "ann"));
        assertThat(Tags.get("x-version")).isEqualTo("v1");
        assertThat(Tags.toTransmit()).isEqualTo(Map.of("x-user", "ann"));
        Tags.transmit(Set.of());
        assertThat(Tags.toTransmit()).isEmpty();
        assertThat(Tags.wanted()).containsExactly("x-version");
        Tags.leave(around);
        assertThat(Tags.get("x-version")).isNull();
    }

    @Test
    void knowsARequestWithinARequestApart() throws InterruptedException {
        Map<String, String> outer = Tags.enter(Map.of("x-tag", "outer"));
        Map<String, String> inner = Tags.enter(Map.of("x-tag", "inner"));
        assertThat(Tags.get("x-tag")).isEqualTo("inner");
        Tags.leave(inner);
        assertThat(Tags.get("x-tag")).isEqualTo("outer");
        String[] elsewhere = {"not asked"};
        Thread other = new Thread(() -> elsewhere[0] = Tags.get("x-tag"));
        other.start();
        other.join();
        assertThat(elsewhere[0]).as("another thread works on no request").isNull();
        Tags.leave(outer);
        assertThat(Tags.get("x-tag")).isNull();
    }
}
