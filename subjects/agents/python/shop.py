"""A shop's product page as JSON, for weighing agents: Flask, SQLAlchemy's ORM on psycopg2, three statements a request, waitress with one process.

  PORT=8080 DATABASE=127.0.0.1:5432 python shop.py

It knows nothing of agents. The tables are those of `../shop.sql`.
"""

import os

from flask import Flask, abort, jsonify
from sqlalchemy import create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from waitress import serve

THREADS = 4
REVIEWS = 5


class Table(DeclarativeBase):
    """Of the database."""


class Product(Table):
    """What is sold."""

    __tablename__ = "product"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    cents: Mapped[int]


class Stock(Table):
    """How many pieces of it are where."""

    __tablename__ = "stock"
    product: Mapped[int] = mapped_column(primary_key=True)
    place: Mapped[str] = mapped_column(primary_key=True)
    pieces: Mapped[int]


class Review(Table):
    """What a buyer says of it."""

    __tablename__ = "review"
    id: Mapped[int] = mapped_column(primary_key=True)
    product: Mapped[int]
    stars: Mapped[int]
    words: Mapped[str]


app = Flask("shop")
engine = create_engine(f"postgresql+psycopg2://postgres@{os.environ['DATABASE']}/shop", pool_size=THREADS)


@app.get("/products/<int:number>")
def product(number):
    """A product, where it is in stock, and its latest reviews."""
    with Session(engine) as session:
        found = session.execute(select(Product).where(Product.id == number)).scalar_one_or_none()
        if found is None:
            abort(404)
        stock = session.execute(select(Stock).where(Stock.product == number).order_by(Stock.place)).scalars()
        places = {it.place: it.pieces for it in stock}
        latest = select(Review).where(Review.product == number).order_by(Review.id.desc()).limit(REVIEWS)
        reviews = [{"stars": it.stars, "words": it.words} for it in session.execute(latest).scalars()]
        return jsonify(id=found.id, name=found.name, cents=found.cents, stock=places, reviews=reviews)


def open_all():
    """All connections are opened before the first request, so that none is part of a request."""
    for connection in [engine.connect() for _ in range(THREADS)]:
        connection.close()


if __name__ == "__main__":
    open_all()
    serve(app, host="127.0.0.1", port=int(os.environ["PORT"]), threads=THREADS)
