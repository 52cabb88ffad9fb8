package tickets.event;

import java.util.List;
import tickets.common.Messages.AreaStatus;
import tickets.common.Messages.Choice;
import tickets.common.Messages.CreateReservation;
import tickets.common.Messages.Open;
import tickets.common.Messages.Reasons;
import tickets.common.Messages.Result;
import tickets.common.Messages.Seat;

/** An area as it stands in the store: {@code taken} has a bit for each seat, row after row. */
record AreaState(String event, String area, int rows, int columns, byte[] taken) {
  /** What a reservation leads to: the area after it, and the answer. */
  record Step(AreaState area, Result result) {}

  static AreaState open(Open command) {
    return new AreaState(command.event(), command.area().id(), command.area().rows(), command.area().columns(),
        new byte[0]);
  }

  AreaStatus status() {
    return new AreaStatus(event, area, rows, columns, new SeatMap(rows, columns, taken).free());
  }

  Step reserve(CreateReservation wish) {
    SeatMap map = new SeatMap(rows, columns, taken);
    if (map.free() < wish.seats()) {
      return refuse(wish, Reasons.SOLD_OUT);
    }
    if (wish.choice() == Choice.SELF_PICK && !map.has(wish.picked())) {
      return refuse(wish, Reasons.NO_SUCH_SEAT);
    }
    List<Seat> seats = wish.choice() == Choice.SELF_PICK ? wish.picked() : map.firstFit(wish.seats());
    if (seats.isEmpty()) {
      return refuse(wish, Reasons.NOT_TOGETHER);
    }
    if (!map.take(seats)) {
      return refuse(wish, Reasons.TAKEN);
    }
    return new Step(new AreaState(event, area, rows, columns, map.taken()), Result.reserved(wish, seats));
  }

  private Step refuse(CreateReservation wish, String reason) {
    return new Step(this, Result.failed(wish, reason));
  }
}
