package governor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Set;
import org.junit.jupiter.api.Test;

class OptionsTest {

    @Test
    void saysWhatIsNotSaid() {
        assertThat(Options.parse("registry=127.0.0.1:2181"))
                .isEqualTo(new Options("127.0.0.1:2181", "/governor", Set.of(), 10));
        assertThat(Options.parse("registry=h:1, rules=/r ,behaviours=router+removal,wait=0"))
                .isEqualTo(new Options("h:1", "/r", Set.of("router", "removal"), 0));
    }

    @Test
    void refusesWhatItDoesNotKnow() {
        assertThatThrownBy(() -> Options.parse(null)).hasMessageContaining("registry=HOST:PORT");
        assertThatThrownBy(() -> Options.parse("registry=h:1,rule=/r")).hasMessageContaining("no option `rule`");
    }
}
