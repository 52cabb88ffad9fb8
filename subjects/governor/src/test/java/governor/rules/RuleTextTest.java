package governor.rules;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class RuleTextTest {

    @Test
    void readsWhatIsThere() {
        RuleText text = RuleText.parse("# a comment\nservice = provider\nheaders=X-A, x-b\nerrors=0.25\ncalls=7\n");
        assertThat(text.text("service")).isEqualTo("provider");
        assertThat(text.lowerNames("headers")).containsExactlyInAnyOrder("x-a", "x-b");
        assertThat(RuleText.parse("topics=A, b").names("topics")).containsExactlyInAnyOrder("A", "b");
        assertThat(text.share("errors", 0.5)).isEqualTo(0.25);
        assertThat(text.share("most", 0.5)).isEqualTo(0.5);
        assertThat(text.count("calls", 5, 10)).isEqualTo(7);
        text.end();
    }

    @Test
    void saysWhatIsWrong() {
        RuleText text = RuleText.parse("errors=1.5\ncalls=2.5\nrest=soon\nheaders=,\ncolour=red\n");
        assertThatThrownBy(() -> text.share("errors", 0.5)).hasMessageContaining("`errors` is `1.5`").hasMessageContaining("0 to 1");
        assertThatThrownBy(() -> text.count("calls", 5, 10)).hasMessageContaining("`calls` is 2.5").hasMessageContaining("1 to 10");
        assertThatThrownBy(() -> text.count("rest", 5, 10)).hasMessageContaining("`rest` is `soon`");
        assertThatThrownBy(() -> text.names("headers")).hasMessageContaining("`headers`");
        assertThatThrownBy(() -> text.text("service")).hasMessageContaining("`service=…` is missing");
        assertThatThrownBy(text::end).hasMessageContaining("colour");
    }
}
