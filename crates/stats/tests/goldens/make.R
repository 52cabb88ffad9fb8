# Makes the golden files that tests/against_r.rs and src/slope.rs read. R is needed for this only:
#
#   cd crates/stats/tests/goldens && Rscript make.R
#
# Without ties everything comes from wilcox.test(exact = TRUE) and t.test. With ties or zeros wilcox.test gives up
# exactness, so those cases come from the definitions (psignrank on counts of Walsh averages), written out in base R.

RNGversion("3.6.0")
set.seed(20240612)
levels <- c(0.95, 0.97, 0.99)
number <- function(x) paste(sprintf("%.17g", x), collapse = " ")
walsh <- function(x) {
  both <- outer(x, x, "+") / 2
  sort(both[upper.tri(both, diag = TRUE)])
}
# Largest k with P(T <= k - 1) <= alpha / 2, or 0.
critical <- function(n, level) sum(psignrank(0:(n * (n + 1) / 4), n) <= (1 - level) / 2)

exact <- function(x, center, y = NULL) {
  test <- function(mu, alternative, level, interval) {
    # As printed by R: y is the variant, x the baseline.
    if (is.null(y)) {
      wilcox.test(x, mu = mu, alternative = alternative, exact = TRUE, conf.int = interval, conf.level = level)
    } else {
      wilcox.test(y, x, paired = TRUE, mu = mu, alternative = alternative, exact = TRUE, conf.int = interval,
                  conf.level = level)
    }
  }
  list(
    p = sapply(c("greater", "less", "two.sided"), function(a) test(center, a, 0.95, FALSE)$p.value),
    interval = function(level) {
      result <- test(0, "two.sided", level, TRUE)
      c(result$estimate, result$conf.int)
    }
  )
}

tied <- function(x, center) {
  w <- walsh(x)
  n <- length(x)
  above <- psignrank(sum(w > center) - 1, n, lower.tail = FALSE)
  below <- psignrank(sum(w < center) - 1, n, lower.tail = FALSE)
  list(
    p = c(above, below, min(1, 2 * min(above, below))),
    interval = function(level) {
      k <- critical(n, level)
      c(median(w), w[k], w[length(w) + 1 - k])
    }
  )
}

write_case <- function(name, x, center, how, y = NULL) {
  n <- length(x)
  cat("case ", name, "\n", sep = "")
  if (is.null(y)) {
    cat("values ", number(x), "\n", sep = "")
    d <- x
  } else {
    cat("baseline ", number(exp(x)), "\n", "variant ", number(exp(y)), "\n", sep = "")
    d <- y - x
  }
  cat("center ", number(center), "\np ", number(how$p), "\n", sep = "")
  cat("mean ", number(mean(d)), "\nsd ", number(sd(d)), "\n", sep = "")
  for (level in levels) {
    k <- critical(n, level)
    ranks <- if (k > 0) c(how$interval(level), 1 - 2 * psignrank(k - 1, n)) else NULL
    cat("t ", number(c(level, t.test(d, conf.level = level)$conf.int)), "\n", sep = "")
    cat("ranks ", number(c(level, k, ranks)), "\n", sep = "")
  }
}

options(warn = 2) # A warning from wilcox.test would mean that it was not exact.
sink("estimates.txt")
cat("# Made by make.R with ", R.version.string, "\n", sep = "")
shapes <- list(
  normal = function(n) rnorm(n, 0.4, 1),
  wild = function(n) rt(n, 2),
  skewed = function(n) rexp(n) - 0.5,
  small = function(n) rnorm(n, 0.0031, 0.002),
  offset = function(n) 1e6 + rnorm(n)
)
for (n in 6:30) {
  for (shape in names(shapes)[c(1, 2 + n %% 4)]) {
    x <- shapes[[shape]](n)
    center <- quantile(x, 0.35, names = FALSE) + 1e-3 * sd(x)
    write_case(paste(shape, n), x, center, exact(x, center))
  }
}
for (n in c(6, 9, 12, 24, 45, 70)) {
  x <- log(50) + rnorm(n, 0, 0.3)
  y <- x + rnorm(n, 0.02, 0.03)
  write_case(paste("paired", n), x, 0.01, exact(x, 0.01, y), y)
}
for (n in c(6, 7, 8, 10, 12, 15, 20, 30)) {
  halves <- sample(-6:14, n, replace = TRUE) / 2
  write_case(paste("tied", n), halves, 0, tied(halves, 0))
  few <- sample(c(0, 0, 1), n, replace = TRUE)
  write_case(paste("zeros", n), few, 0, tied(few, 0))
}
sink()

sink("distributions.txt")
cat("# Made by make.R with ", R.version.string, "\n", sep = "")
for (n in c(1, 2, 5, 6, 12, 13, 24, 30, 60, 120, 200)) {
  for (sum in unique(round(n * (n + 1) / 2 * c(0, 0.05, 0.17, 0.25, 0.3, 0.42, 0.5, 0.61, 0.9, 1)))) {
    cat("signed_rank ", number(c(n, sum, psignrank(sum, n), psignrank(sum - 1, n, lower.tail = FALSE))), "\n", sep = "")
  }
}
for (n in c(6:50, 75, 100, 150, 200)) {
  for (level in levels) cat("critical ", number(c(n, level, critical(n, level))), "\n", sep = "")
}
for (df in c(1, 2, 3, 5, 7, 11, 19, 23, 29, 59, 199, 1999)) {
  for (p in c(0.5001, 0.6, 0.8, 0.95, 0.975, 0.985, 0.995, 0.99975, 0.025)) {
    cat("student ", number(c(df, p, qt(p, df))), "\n", sep = "")
  }
}
# Theil-Sen from its definition; base R has none.
for (n in c(5, 8, 12, 30)) {
  time <- cumsum(runif(n, 0.5, 1.5))
  value <- 100 + 0.3 * time + rt(n, 3)
  pairs <- combn(n, 2)
  slopes <- sort((value[pairs[2, ]] - value[pairs[1, ]]) / (time[pairs[2, ]] - time[pairs[1, ]]))
  k <- sum(.Call(stats:::C_pKendall, 0:(n * (n - 1) / 4), n) <= 0.025)
  cat("slope ", number(c(rbind(time, value))), " | ", number(c(median(slopes), slopes[k], slopes[length(slopes) + 1 - k])), "\n", sep = "")
}
for (m in c(1, 2, 5, 9, 36)) {
  p <- signif(rbeta(m, 0.4, 3), 6)
  cat("holm ", number(p), " | ", number(p.adjust(p, "holm")), "\n", sep = "")
}
sink()

# Read by the unit tests of src/slope.rs.
sink("kendall.txt")
cat("# Made by make.R with ", R.version.string, "\n", sep = "")
# P(at most d pairs in disorder): the exact distribution behind cor.test(method = "kendall").
for (n in c(5, 6, 8, 12, 20, 40, 49)) {
  for (d in unique(round(n * (n - 1) / 2 * c(0, 0.1, 0.2, 0.3, 0.4, 0.5)))) {
    cat(number(c(n, d, .Call(stats:::C_pKendall, d, n))), "\n", sep = "")
  }
}
sink()
