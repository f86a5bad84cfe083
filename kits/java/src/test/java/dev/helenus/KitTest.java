package dev.helenus;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DriverException;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** The kit's own tests; they are also what its users copy from. */
@ExtendWith(HelenusExtension.class)
class KitTest {
  // What a user writes: it moves the clock, meets a fault and a throttle.
  @Test
  void aCartExpires(Helenus server) {
    CqlSession cql = server.session("shop");
    cql.execute("CREATE TABLE IF NOT EXISTS cart (id int PRIMARY KEY) WITH cosmosdb_provisioned_throughput = 400");
    PreparedStatement put = cql.prepare("INSERT INTO cart (id) VALUES (?) USING TTL 60");
    server.faults(Map.of("action", "throttle", "table", "cart", "statement", "write", "count", 1));
    assertThrows(DriverException.class, () -> cql.execute(put.bind(1)));
    assertEquals(1, server.faultPlan().path("fault").path(0).path("hit").asInt());
    assertThrows(DriverException.class, () -> {
      for (int id = 0; id < 5000; id++) cql.execute(put.bind(id));
    });
    server.assertThrottled();
    server.advance(Duration.ofSeconds(61));
    assertEquals(0, cql.execute("SELECT * FROM cart").all().size());
  }

  @Test
  void chargesAreCounted(Helenus server) {
    CqlSession cql = server.session("charges");
    cql.execute("CREATE TABLE IF NOT EXISTS t (k int PRIMARY KEY)");
    double before = server.charge("charges");
    server.assertChargeMax("charges", 100, () -> cql.execute("INSERT INTO t (k) VALUES (1)"));
    assertTrue(server.charge("charges") > before);
    HelenusException unknown = assertThrows(HelenusException.class, () -> server.charge("chargse"));
    assertTrue(unknown.getMessage().contains("charges.t"), unknown.getMessage());
    assertThrows(
        AssertionError.class, () -> server.assertChargeMax("charges", 0.1, () -> cql.execute("INSERT INTO t (k) VALUES (2)")));
  }

  @Test
  void theServerEndsWithAKilledRunner() throws Exception {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    Process runner = new ProcessBuilder(java, "-cp", System.getProperty("java.class.path"), Runner.class.getName()).start();
    String line = new BufferedReader(new InputStreamReader(runner.getInputStream())).readLine();
    ProcessHandle server = ProcessHandle.of(Long.parseLong(line)).orElseThrow();
    runner.destroyForcibly().waitFor();
    for (int tries = 0; tries < 500 && !gone(server.pid()); tries++) {
      Thread.sleep(10);
    }
    assertTrue(gone(server.pid()), "the server is still there");
  }

  /** Whether a process has ended. Where no process reaps it, it stays as a zombie. */
  private static boolean gone(long pid) throws Exception {
    Path stat = Path.of("/proc/" + pid + "/stat");
    try {
      return Files.readString(stat).contains(") Z ");
    } catch (java.nio.file.NoSuchFileException gone) {
      return true;
    }
  }

  /** Starts a server and waits to be killed. */
  static final class Runner {
    public static void main(String[] arguments) throws Exception {
      System.out.println(Helenus.start().pid());
      Thread.sleep(60_000);
    }
  }

  @Test
  void refusalsNameTheirCause(Helenus server, @TempDir Path folder) throws Exception {
    assertTrue(refusal(() -> Helenus.start("--durability=never")).contains("durability"));
    assertTrue(refusal(() -> Helenus.start(Path.of("/nowhere/helenus"), List.of())).contains("is not a program"));
    assertTrue(refusal(() -> server.ask("POST", "/api/clock", Map.of("set_ms", 0))).contains("409"));
    Path program = folder.resolve("helenus");
    Files.writeString(program, "#!/bin/sh\necho '{\"api\":2}'; cat >/dev/null\n");
    assertTrue(program.toFile().setExecutable(true));
    assertEquals("the server's record has version 2; this package reads 1", refusal(() -> Helenus.start(program, List.of())));
  }

  private static String refusal(Runnable work) {
    return assertThrows(HelenusException.class, work::run).getMessage();
  }

  @Test
  void aCarriedProgramIsExtractedOnce(@TempDir Path cache) throws Exception {
    byte[] program = "#!/bin/sh\necho carried\n".getBytes();
    Path path = Programs.extract(program, cache);
    assertEquals(path, Programs.extract(program, cache));
    assertEquals("carried\n", new String(new ProcessBuilder(path.toString()).start().getInputStream().readAllBytes()));
    assertEquals("[helenus]", Arrays.toString(path.getParent().toFile().list()));
  }

  @Test
  void cosmosNeedsAnAccount() {
    try (Helenus server = Helenus.start("--profile", "cosmos", "--tls-listen", "127.0.0.1:0")) {
      server.session("shop").execute("CREATE TABLE orders (id int PRIMARY KEY)");
      assertNotNull(server.record("account"));
      assertNotNull(server.record("certificate_pem"));
    }
  }
}
