package shop.vets;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Table;

/** Something that a vet can do. */
@Entity
@Table(name = "specialties")
class Specialty {
  @Id
  @GeneratedValue(strategy = GenerationType.IDENTITY)
  private Integer id;

  private String name;

  Integer id() {
    return id;
  }

  String name() {
    return name;
  }
}
