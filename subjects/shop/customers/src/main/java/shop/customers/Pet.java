package shop.customers;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.JoinColumn;
import jakarta.persistence.ManyToOne;
import jakarta.persistence.Table;
import java.time.LocalDate;

/** A pet of an owner. */
@Entity
@Table(name = "pets")
class Pet {
  @Id
  @GeneratedValue(strategy = GenerationType.IDENTITY)
  private Integer id;

  private String name;

  private LocalDate birthDate;

  @ManyToOne(optional = false)
  @JoinColumn(name = "type_id")
  private Kind kind;

  Integer id() {
    return id;
  }

  String name() {
    return name;
  }

  LocalDate birthDate() {
    return birthDate;
  }

  Kind kind() {
    return kind;
  }
}
