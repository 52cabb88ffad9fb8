// How much of a difference between two identical pieces of work is the machine's, by the length of the blocks in which they take
// turns. Does the same work 500 times a second, takes its CPU time each time, and deals the times out to two sides as alternating
// blocks would: pairs of blocks, each pair in an order drawn by lot. Prints rows of a Markdown table: the standard deviation of
// log(one side / the other) over windows of 4 s a side, for each length.
//
//   pace MIB SECONDS      MiB that the work reads, and for how long; `run.py --pace` makes the table
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RATE = 500, WINDOW_S = 4, LOTS = 16 };
static const int LENGTHS_MS[] = {10, 25, 50, 100, 200, 1000, 4000};
enum { LENGTHS = sizeof LENGTHS_MS / sizeof *LENGTHS_MS };

static double cpu_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static volatile unsigned kept;

// Reads `steps` bytes, each at a place that the last one decides.
static void work(const unsigned char *bytes, unsigned size, int steps) {
  unsigned sum = 1;
  for (int step = 0; step < steps; step++) sum = sum * 31 + bytes[(sum >> 3) % size];
  kept = sum;
}

// By a window that begins at `us`: log of what one side has had over what the other has.
static double difference(const double *us, int block) {
  double sides[2] = {0, 0};
  int window = 2 * WINDOW_S * RATE;
  for (int at = 0; at + 2 * block <= window; at += 2 * block) {
    int first = rand() >> 8 & 1;
    for (int i = 0; i < block; i++) {
      sides[first] += us[at + i];
      sides[!first] += us[at + block + i];
    }
  }
  return log(sides[0] / sides[1]);
}

int main(int count, char **arguments) {
  if (count != 3) {
    fputs("pace MIB SECONDS: MiB that the work reads, and for how long\n", stderr);
    return 2;
  }
  double mib = atof(arguments[1]);
  int requests = atoi(arguments[2]) * RATE, windows = requests / (2 * WINDOW_S * RATE);
  unsigned size = (unsigned)(mib * (1 << 20));
  unsigned char *bytes = malloc(size);
  double *us = malloc(requests * sizeof *us);
  if (size == 0 || windows < 4 || !bytes || !us) {
    fputs("pace: wants some memory, and 32 s or more\n", stderr);
    return 2;
  }
  memset(bytes, 1, size);
  // As much work as takes 150 µs here, once the memory is known to the processor.
  for (int i = 0; i < 100; i++) work(bytes, size, 100000);
  int steps = 1000;
  for (double begun; begun = cpu_us(), work(bytes, size, steps), cpu_us() - begun < 150;) steps += steps / 4;
  struct timespec due;
  clock_gettime(CLOCK_MONOTONIC, &due);
  double sum = 0;
  for (int at = 0; at < requests; at++) {
    due.tv_nsec += 1000000000 / RATE;
    if (due.tv_nsec >= 1000000000) due.tv_nsec -= 1000000000, due.tv_sec++;
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
    double begun = cpu_us();
    work(bytes, size, steps);
    sum += us[at] = cpu_us() - begun;
  }
  double mean = sum / requests, squares_of_tenths = 0;
  int tenth = RATE / 10, tenths = requests / tenth;
  for (int at = 0; at < tenths; at++) {
    double of = 0;
    for (int i = 0; i < tenth; i++) of += us[at * tenth + i];
    squares_of_tenths += (of / tenth - mean) * (of / tenth - mean);
  }
  printf("| %g MiB | %.0f | %.0f %% |", mib, mean, 100 * sqrt(squares_of_tenths / tenths) / mean);
  for (int i = 0; i < LENGTHS; i++) {
    double squares = 0;
    for (int window = 0; window < windows; window++)
      for (int lot = 0; lot < LOTS; lot++) {
        double found = difference(us + window * 2 * WINDOW_S * RATE, LENGTHS_MS[i] * RATE / 1000);
        squares += found * found;
      }
    printf(" %.2f %% |", 100 * sqrt(squares / (windows * LOTS)));
  }
  putchar('\n');
}
