package shop.visits;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.client.TestRestTemplate;

/** The whole service with its database. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
class VisitsTest {
  @Autowired
  TestRestTemplate web;

  @Test
  void visitsOfSeveralPetsByDate() {
    assertThat(web.getForObject("/pets/visits?petId=2,7", String.class)).isEqualTo("{\"items\":["
        + "{\"id\":1,\"petId\":2,\"date\":\"2024-02-01\",\"description\":\"vaccination\"},"
        + "{\"id\":4,\"petId\":7,\"date\":\"2024-05-28\",\"description\":\"sore paw\"},"
        + "{\"id\":2,\"petId\":2,\"date\":\"2024-08-15\",\"description\":\"check-up\"}]}");
  }

  @Test
  void newVisitsAreKept() {
    web.postForObject("/pets/13/visits", Map.of("date", "2024-09-01", "description", "limping"), String.class);
    assertThat(web.getForObject("/pets/visits?petId=13", String.class)).contains("limping");
  }
}
