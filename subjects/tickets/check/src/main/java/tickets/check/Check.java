package tickets.check;

import picocli.CommandLine;
import picocli.CommandLine.Command;

/** What goes before and after a load of the ticket shop. */
@Command(name = "check", mixinStandardHelpOptions = true, subcommands = {Setup.class, Verify.class},
    description = "What goes before and after a load of the ticket shop.")
public final class Check {
  private static final int BROKEN = 2;

  private Check() {}

  /** Runs one of the commands; ends with 1 if the books are wrong, with 2 if it could not look. */
  public static void main(String[] args) {
    CommandLine line = new CommandLine(new Check());
    line.setExecutionExceptionHandler((e, at, parsed) -> {
      System.err.println(e.getMessage() == null ? e.toString() : e.getMessage());
      return BROKEN;
    });
    System.exit(line.execute(args));
  }
}
