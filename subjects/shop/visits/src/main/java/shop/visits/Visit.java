package shop.visits;

import jakarta.persistence.Column;
import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;
import jakarta.persistence.Table;
import java.time.LocalDate;

/** A pet was here. */
@Entity
@Table(name = "visits")
class Visit {
  @Id
  @GeneratedValue(strategy = GenerationType.IDENTITY)
  private Integer id;

  private int petId;

  @Column(name = "visit_date")
  private LocalDate date;

  private String description;

  protected Visit() {}

  Visit(int petId, LocalDate date, String description) {
    this.petId = petId;
    this.date = date;
    this.description = description;
  }

  Integer id() {
    return id;
  }

  int petId() {
    return petId;
  }

  LocalDate date() {
    return date;
  }

  String description() {
    return description;
  }
}
