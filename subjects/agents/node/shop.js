// A shop's product page as JSON, for weighing agents: Express, pg with a pool, three statements a request.
//
//   PORT=8080 DATABASE=127.0.0.1:5432 [POOL=10] node shop.js
//
// POOL is how many connections to the database there are; 10 is the driver's default.
// It knows nothing of agents. The tables are those of `../shop.sql`.

const express = require("express");
const { Pool } = require("pg");

const CONNECTIONS = Number(process.env.POOL ?? 10);
const REVIEWS = 5;

const [host, port] = process.env.DATABASE.split(":");
const pool = new Pool({ host, port: Number(port), user: "postgres", database: "shop", max: CONNECTIONS, idleTimeoutMillis: 0 });
const app = express();

// A product, where it is in stock, and its latest reviews.
app.get("/products/:number", async (request, response) => {
  const number = Number(request.params.number);
  const product = (await pool.query("SELECT id, name, cents FROM product WHERE id = $1", [number])).rows[0];
  if (!product) return response.sendStatus(404);
  const stock = await pool.query("SELECT place, pieces FROM stock WHERE product = $1 ORDER BY place", [number]);
  const reviews = await pool.query("SELECT stars, words FROM review WHERE product = $1 ORDER BY id DESC LIMIT $2", [number, REVIEWS]);
  const places = Object.fromEntries(stock.rows.map(({ place, pieces }) => [place, pieces]));
  response.json({ ...product, stock: places, reviews: reviews.rows });
});

// All connections are opened before the first request, so that none is part of a request.
async function start() {
  const clients = await Promise.all(Array.from({ length: CONNECTIONS }, () => pool.connect()));
  clients.forEach((client) => client.release());
  const server = app.listen(Number(process.env.PORT), "127.0.0.1");
  // Without it an agent that handles the signal itself would keep the service alive.
  process.on("SIGTERM", () => server.close(() => pool.end()));
}

start();
