package shop.customers;

import jakarta.validation.Valid;
import jakarta.validation.constraints.Digits;
import jakarta.validation.constraints.NotBlank;
import java.time.LocalDate;
import java.util.List;
import org.springframework.http.HttpStatus;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

@RestController
class CustomerController {
  record KindView(Integer id, String name) {
    static KindView of(Kind kind) {
      return new KindView(kind.id(), kind.name());
    }
  }

  record PetView(Integer id, String name, LocalDate birthDate, KindView type) {
    static PetView of(Pet pet) {
      return new PetView(pet.id(), pet.name(), pet.birthDate(), KindView.of(pet.kind()));
    }
  }

  record OwnerView(Integer id, String firstName, String lastName, String address, String city, String telephone,
      List<PetView> pets) {
    static OwnerView of(Owner owner) {
      return new OwnerView(owner.id(), owner.firstName(), owner.lastName(), owner.address(), owner.city(),
          owner.telephone(), owner.pets().stream().map(PetView::of).toList());
    }
  }

  record NewOwner(@NotBlank String firstName, @NotBlank String lastName, @NotBlank String address,
      @NotBlank String city, @NotBlank @Digits(integer = 12, fraction = 0) String telephone) {}

  private final OwnerRepository owners;
  private final KindRepository kinds;

  CustomerController(OwnerRepository owners, KindRepository kinds) {
    this.owners = owners;
    this.kinds = kinds;
  }

  @GetMapping("/owners")
  @Transactional(readOnly = true)
  public List<OwnerView> owners() {
    return owners.findAll().stream().map(OwnerView::of).toList();
  }

  @GetMapping("/owners/{id}")
  @Transactional(readOnly = true)
  public OwnerView owner(@PathVariable int id) {
    return owners.findById(id).map(OwnerView::of)
        .orElseThrow(() -> new ResponseStatusException(HttpStatus.NOT_FOUND, "no owner " + id));
  }

  @PostMapping("/owners")
  @ResponseStatus(HttpStatus.CREATED)
  @Transactional
  public OwnerView add(@Valid @RequestBody NewOwner it) {
    Owner owner = new Owner(it.firstName(), it.lastName(), it.address(), it.city(), it.telephone());
    return OwnerView.of(owners.save(owner));
  }

  @GetMapping("/petTypes")
  public List<KindView> kinds() {
    return kinds.findAllByOrderByName().stream().map(KindView::of).toList();
  }
}
