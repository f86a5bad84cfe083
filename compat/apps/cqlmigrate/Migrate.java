import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.Row;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import uk.sky.cqlmigrate.CassandraLockConfig;
import uk.sky.cqlmigrate.CqlMigrator;
import uk.sky.cqlmigrate.CqlMigratorConfig;
import uk.sky.cqlmigrate.CqlMigratorFactory;

/** Migrate HOST PORT FOLDER: migrations with cqlmigrate, which locks by lightweight transactions and notes checksums. */
class Migrate {
  private static final String KEYSPACE = "apps_cqlmigrate";
  private static int failed;

  private static void check(String name, Callable<Boolean> holds) {
    boolean passed = false;
    try {
      passed = holds.call();
    } catch (Exception e) {
      e.printStackTrace();
    }
    failed += passed ? 0 : 1;
    System.out.println((passed ? "PASS " : "FAIL ") + name);
  }

  private static CqlMigrator migrator() {
    return CqlMigratorFactory.create(CqlMigratorConfig.builder()
        .withLockConfig(CassandraLockConfig.builder().withTimeout(Duration.ofSeconds(3)).unlockOnFailure()
            .withPollingInterval(Duration.ofMillis(50)).build())
        .withReadConsistencyLevel(com.datastax.oss.driver.api.core.ConsistencyLevel.LOCAL_ONE)
        .withWriteConsistencyLevel(com.datastax.oss.driver.api.core.ConsistencyLevel.ALL).build());
  }

  private static boolean fails(Callable<Void> run, String text) throws Exception {
    try {
      run.call();
      return false;
    } catch (RuntimeException e) {
      for (Throwable cause = e; cause != null; cause = cause.getCause()) {
        if (String.valueOf(cause.getMessage()).contains(text)) {
          return true;
        }
      }
      throw e;
    }
  }

  public static void main(String[] args) throws Exception {
    Path folder = Path.of(args[2]);
    Path first = folder.resolve("first"), second = folder.resolve("second"), broken = folder.resolve("broken");
    try (CqlSession session = CqlSession.builder().addContactPoint(new InetSocketAddress(args[0], Integer.parseInt(args[1])))
        .withLocalDatacenter("datacenter1").build()) {
      session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
      session.execute("CREATE KEYSPACE IF NOT EXISTS cqlmigrate WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
      session.execute("DROP TABLE IF EXISTS cqlmigrate.locks");
      session.execute("CREATE TABLE cqlmigrate.locks (name text PRIMARY KEY, client text)");
      check("first", () -> {
        migrator().migrate(session, KEYSPACE, List.of(first));
        return true;
      });
      check("checksums", () -> {
        List<Row> rows = session.execute("SELECT filename, checksum FROM " + KEYSPACE + ".schema_updates").all();
        return rows.size() == 1 && rows.get(0).getString("filename").equals("001_orders.cql") && rows.get(0).getString("checksum").length() == 40;
      });
      check("second", () -> {
        migrator().migrate(session, KEYSPACE, List.of(first, second));
        Row row = session.execute("SELECT note, total FROM " + KEYSPACE + ".orders").one();
        return row.getString("note").equals("a\nsecond line") && row.getBigDecimal("total").toString().equals("12.50");
      });
      check("nothing_to_do", () -> {
        migrator().migrate(session, KEYSPACE, List.of(first, second));
        return session.execute("SELECT * FROM " + KEYSPACE + ".schema_updates").all().size() == 2;
      });
      check("lock_released", () -> session.execute("SELECT * FROM cqlmigrate.locks").all().isEmpty());
      check("two_at_once", () -> {
        List<Thread> threads = new ArrayList<>();
        List<Throwable> errors = java.util.Collections.synchronizedList(new ArrayList<>());
        for (int client = 0; client < 3; client++) {
          Thread thread = new Thread(() -> migrator().migrate(session, KEYSPACE, List.of(first, second)));
          thread.setUncaughtExceptionHandler((each, error) -> errors.add(error));
          threads.add(thread);
          thread.start();
        }
        for (Thread thread : threads) {
          thread.join();
        }
        errors.forEach(Throwable::printStackTrace);
        return errors.isEmpty();
      });
      check("locked_by_another", () -> {
        session.execute("INSERT INTO cqlmigrate.locks (name, client) VALUES ('" + KEYSPACE + ".schema_migration', 'another') IF NOT EXISTS");
        CqlMigrator impatient = CqlMigratorFactory.create(CassandraLockConfig.builder().withTimeout(Duration.ofSeconds(1))
            .withPollingInterval(Duration.ofMillis(100)).build());
        boolean refused = fails(() -> {
          impatient.migrate(session, KEYSPACE, List.of(first, second));
          return null;
        }, "lock");
        session.execute("DELETE FROM cqlmigrate.locks WHERE name = '" + KEYSPACE + ".schema_migration' IF client = 'another'");
        return refused;
      });
      check("changed_file", () -> {
        Path changed = Files.createTempDirectory("changed");
        Path file = Files.writeString(changed.resolve("001_orders.cql"), "CREATE TABLE other (id int PRIMARY KEY);");
        boolean refused = fails(() -> {
          migrator().migrate(session, KEYSPACE, List.of(changed));
          return null;
        }, "changed");
        Files.delete(file);
        Files.delete(changed);
        return refused;
      });
      check("broken", () -> fails(() -> {
        migrator().migrate(session, KEYSPACE, List.of(broken));
        return null;
      }, "missing"));
      check("clean", () -> {
        migrator().clean(session, KEYSPACE);
        return session.execute("SELECT * FROM system_schema.keyspaces WHERE keyspace_name = '" + KEYSPACE + "'").one() == null;
      });
      session.execute("DROP KEYSPACE cqlmigrate");
    }
    System.exit(Math.min(failed, 1));
  }
}
