// Prints a span as a line of JSON, with its start and its duration in ns: JSON.stringify knows no BigInt, and a number has no room for the
// nanoseconds since 1970.
export const print = (row, start, duration) =>
  console.log(JSON.stringify(row).replace(/}$/, `,"start_ns":${start},"duration_ns":${duration}}`));
