package dev.helenus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.parallel.Execution;
import org.junit.jupiter.api.parallel.ExecutionMode;

/** Two hundred tests, two at a time, each on a table of the same name. */
@Execution(ExecutionMode.CONCURRENT)
class InterferenceTest {
  @RegisterExtension static final HelenusExtension HELENUS = HelenusExtension.with("--cluster-name=interference");

  private static final Set<Long> SERVERS = ConcurrentHashMap.newKeySet();

  @RepeatedTest(200)
  void aRowIsAlone(RepetitionInfo repetition, Helenus server) {
    SERVERS.add(server.pid());
    int number = repetition.getCurrentRepetition();
    CqlSession cql = server.session("same");
    cql.execute("CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)");
    cql.execute("INSERT INTO t (k) VALUES (" + number + ")");
    var rows = cql.execute("SELECT k FROM t").all();
    assertEquals(1, rows.size());
    assertEquals(number, rows.get(0).getInt(0));
  }

  @AfterAll
  static void twoServersServedThem() {
    assertTrue(SERVERS.size() == 2, "two tests at a time used " + SERVERS.size() + " servers");
  }
}
