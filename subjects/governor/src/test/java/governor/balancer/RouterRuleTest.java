package governor.balancer;

import static org.assertj.core.api.Assertions.assertThat;

import governor.rules.RuleText;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class RouterRuleTest {

    private static final RouterRule RULE = RouterRule.of(RuleText.parse("service=provider\nheader=X-Version\nlabel=version"));
    private static final List<String> ALL = List.of("v1", "v2", "v3", "v2");

    private static List<String> choose(String value) {
        return RULE.choose(ALL, value, name -> name.equals("v3") ? Map.of() : Map.of("version", name));
    }

    @Test
    void choosesByTheLabel() {
        assertThat(RULE.header()).isEqualTo("x-version");
        assertThat(choose("v2")).containsExactly("v2", "v2");
        assertThat(choose("v1")).containsExactly("v1");
    }

    @Test
    void leavesAllToARequestWithoutAWishOrWithOneThatNobodyFulfils() {
        assertThat(choose(null)).isEqualTo(ALL);
        assertThat(choose("v3")).isEqualTo(ALL);
    }
}
