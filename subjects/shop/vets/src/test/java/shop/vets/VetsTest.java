package shop.vets;

import static org.assertj.core.api.Assertions.assertThat;

import jakarta.persistence.EntityManagerFactory;
import org.hibernate.SessionFactory;
import org.hibernate.stat.Statistics;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.client.TestRestTemplate;

/** The whole service with its database, as the study asks it. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT,
    properties = {"spring.jpa.properties.hibernate.generate_statistics=true", "leak.kib-per-second=17"})
class VetsTest {
  @Autowired
  TestRestTemplate web;

  @Autowired
  EntityManagerFactory factory;

  @Autowired
  Leak leak;

  @Test
  void oneStatementForTheVetsAndOneForTheSpecialtiesOfEach() {
    Statistics statistics = factory.unwrap(SessionFactory.class).getStatistics();
    statistics.clear();
    String body = web.getForObject("/vets", String.class);
    assertThat(statistics.getPrepareStatementCount()).isEqualTo(7);
    assertThat(body).contains("\"lastName\":\"Nyberg\",\"specialties\":[{\"id\":3,\"name\":\"dentistry\"},"
        + "{\"id\":2,\"name\":\"surgery\"}],\"nrOfSpecialties\":2");
    // With its headers about as long as the published one, 780 bytes.
    assertThat(body.length()).isBetween(600, 800);
  }

  @Test
  void leaksAsMuchAsItIsTold() throws InterruptedException {
    long deadline = System.nanoTime() + 5_000_000_000L;
    while (leak.size() < 2 * 17 * 1024 && System.nanoTime() < deadline) {
      Thread.sleep(50);
    }
    assertThat(leak.size()).isPositive().isEqualTo(leak.size() / 17_408 * 17_408);
  }
}
