// What a sender's library tells of losses in its log.

let heard = false;

// Prints it, and remembers that there was something.
export const complain = (...message) => {
  heard = true;
  console.error(...message);
};

// For libraries that take one.
export const logger = { error: complain, warn: complain, info() {}, debug() {}, verbose() {} };

// With which a sender ends.
export const exitCode = () => (heard ? 1 : 0);
