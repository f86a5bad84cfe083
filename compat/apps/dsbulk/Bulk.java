import com.datastax.oss.dsbulk.runner.DataStaxBulkLoader;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;

/** Runs DSBulk once for each line of standard input, whose arguments stand between tabs, and prints how each run ended: one machine for all. */
class Bulk {
  public static void main(String[] none) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = lines.readLine()) != null; ) {
      answers.println(new DataStaxBulkLoader(line.split("\t")).run().exitCode());
      answers.flush();
    }
    // Threads of a run may still live.
    System.exit(0);
  }
}
