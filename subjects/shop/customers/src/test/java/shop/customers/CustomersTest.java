package shop.customers;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.client.TestRestTemplate;
import org.springframework.http.HttpStatus;

/** The whole service with its database. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
class CustomersTest {
  @Autowired
  TestRestTemplate web;

  @Test
  void ownersHaveTheirPets() {
    String owner = web.getForObject("/owners/3", String.class);
    assertThat(owner).contains("\"lastName\":\"Ferro\"", "\"name\":\"Dotty\"", "\"birthDate\":\"2021-06-11\"",
        "{\"id\":3,\"name\":\"parrot\"}");
    assertThat(web.getForObject("/owners", List.class)).hasSizeGreaterThanOrEqualTo(10);
    assertThat(web.getForObject("/petTypes", String.class)).startsWith("[{\"id\":1,\"name\":\"cat\"}");
  }

  @Test
  void ownersThatAreNotThereAreNotFound() {
    assertThat(web.getForEntity("/owners/99", String.class).getStatusCode()).isEqualTo(HttpStatus.NOT_FOUND);
  }

  @Test
  void newOwnersAreKeptIfTheyAreWhole() {
    Map<String, String> owner = Map.of("firstName", "Rosa", "lastName", "Vale", "address", "1 High Street", "city",
        "Alderton", "telephone", "5550100111");
    var added = web.postForEntity("/owners", owner, Map.class);
    assertThat(added.getStatusCode()).isEqualTo(HttpStatus.CREATED);
    assertThat(web.getForObject("/owners/" + added.getBody().get("id"), String.class)).contains("Vale");
    var half = web.postForEntity("/owners", Map.of("firstName", "Rosa"), String.class);
    assertThat(half.getStatusCode()).isEqualTo(HttpStatus.BAD_REQUEST);
  }
}
