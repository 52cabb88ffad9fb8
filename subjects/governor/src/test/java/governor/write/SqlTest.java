package governor.write;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import governor.rules.RuleText;
import java.sql.SQLException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SqlTest {

    @AfterEach
    void noRule() {
        new WriteProhibition().rule(null);
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "INSERT INTO t VALUES (1)",
        "  \n update t set a = 1",
        "/* why */ DELETE FROM t",
        "-- a line\nREPLACE INTO t VALUES (1)",
        "# a line\n/* and\nmore */ drop table t",
        "TRUNCATE t",
        "WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone"
    })
    void writes(String statement) {
        assertThat(Sql.writes(statement)).isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "",
        "SELECT * FROM inserts",
        "(select 1) union (select 2)",
        "SHOW TABLES",
        "set autocommit=1",
        "COMMIT",
        "/* INSERT */ SELECT 1",
        "WITH a AS (SELECT 'insert' AS text) SELECT text FROM a",
        "EXPLAIN SELECT 1"
    })
    void reads(String statement) {
        assertThat(Sql.writes(statement)).isFalse();
    }

    @Test
    void refusesTheDatabasesOfTheRule() {
        assertThat(Writes.isWatched("shop")).isFalse();
        new WriteProhibition().rule(RuleText.parse("databases=Shop, other"));
        assertThat(Writes.isWatched("SHOP")).isTrue();
        assertThat(Writes.isWatched("third")).isFalse();
        assertThat(Writes.isWatched(null)).isFalse();
        assertThatThrownBy(() -> Writes.check("shop", "insert into t values (1)"))
                .isInstanceOf(SQLException.class)
                .hasMessageContaining("`shop`");
        assertThatCode(() -> Writes.check("shop", "select 1")).doesNotThrowAnyException();
        assertThatCode(() -> Writes.check("shop", null)).doesNotThrowAnyException();
    }
}
