package shop.vets;

import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;
import static org.springframework.test.web.servlet.request.MockMvcRequestBuilders.get;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.content;
import static org.springframework.test.web.servlet.result.MockMvcResultMatchers.status;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.boot.test.autoconfigure.web.servlet.WebMvcTest;
import org.springframework.test.context.bean.override.mockito.MockitoBean;
import org.springframework.test.web.servlet.MockMvc;

@WebMvcTest(VetController.class)
class VetControllerTest {
  @Autowired
  MockMvc web;

  @MockitoBean
  VetRepository vets;

  @Test
  void showsVetsWithTheirSpecialties() throws Exception {
    Specialty surgery = mock(Specialty.class);
    when(surgery.id()).thenReturn(2);
    when(surgery.name()).thenReturn("surgery");
    Vet vet = mock(Vet.class);
    when(vet.id()).thenReturn(4);
    when(vet.firstName()).thenReturn("Dmitri");
    when(vet.lastName()).thenReturn("Oduya");
    when(vet.specialties()).thenReturn(List.of(surgery));
    when(vets.findAll()).thenReturn(List.of(vet));

    web.perform(get("/vets")).andExpect(status().isOk()).andExpect(content().json("""
        [{"id": 4, "firstName": "Dmitri", "lastName": "Oduya",
          "specialties": [{"id": 2, "name": "surgery"}], "nrOfSpecialties": 1}]"""));
  }
}
