package shop.vets;

import jakarta.persistence.Entity;
import jakarta.persistence.FetchType;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.JoinTable;
import jakarta.persistence.ManyToMany;
import jakarta.persistence.OrderBy;
import jakarta.persistence.Table;
import java.util.ArrayList;
import java.util.List;

/** A vet. The specialties are fetched vet by vet when somebody asks: for n vets that is 1 + n statements, on purpose. */
@Entity
@Table(name = "vets")
class Vet {
  @Id
  @GeneratedValue(strategy = GenerationType.IDENTITY)
  private Integer id;

  private String firstName;

  private String lastName;

  @ManyToMany(fetch = FetchType.LAZY)
  @JoinTable(name = "vet_specialties", joinColumns = @JoinColumn(name = "vet_id"),
      inverseJoinColumns = @JoinColumn(name = "specialty_id"))
  @OrderBy("name")
  private List<Specialty> specialties = new ArrayList<>();

  Integer id() {
    return id;
  }

  String firstName() {
    return firstName;
  }

  String lastName() {
    return lastName;
  }

  List<Specialty> specialties() {
    return specialties;
  }
}
