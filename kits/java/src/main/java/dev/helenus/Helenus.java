package dev.helenus;

import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.CqlSessionBuilder;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.internal.core.loadbalancing.DcInferringLoadBalancingPolicy;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;

/**
 * A running server, and what controls it: its clock, its data, its faults. Tests take one by {@link HelenusExtension}.
 *
 * <p>The server is a child process that keeps its data in memory. It ends with {@link #close}, and when this process ends, however it ends:
 * the child reads its standard input, which this process holds open.
 */
public final class Helenus implements AutoCloseable {
  /** The version of the server's record that this class reads. */
  public static final int API = 1;

  private static final int LOG_LINES_MAX = 50;
  private static final Duration ADMIN_TIME_MAX = Duration.ofSeconds(30);
  private static final ObjectMapper JSON = new ObjectMapper();

  private final Process child;
  private final Deque<String> log = new ArrayDeque<>();
  private final Thread reader;
  private final List<CqlSession> sessions = new ArrayList<>();
  private final HttpClient client = HttpClient.newHttpClient();
  private final JsonNode record;

  /** Starts a server on free ports and waits until it answers. The arguments are passed on: {@code --nodes=4}. */
  public static Helenus start(String... arguments) {
    return start(null, List.of(arguments));
  }

  /** The same with a program; {@code null}: {@link Programs#find} looks for one. */
  public static Helenus start(Path program, List<String> arguments) {
    List<String> command = new ArrayList<>(List.of(Programs.find(program).toString(), "serve", "--data", "memory:"));
    command.addAll(List.of("--ready-json", "-", "--exit-with-stdin", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"));
    command.addAll(arguments);
    try {
      return new Helenus(new ProcessBuilder(command).start());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    }
  }

  private Helenus(Process child) throws IOException {
    this.child = child;
    reader = new Thread(this::readLog, "helenus-log");
    reader.setDaemon(true);
    reader.start();
    BufferedReader output = new BufferedReader(new InputStreamReader(child.getInputStream(), StandardCharsets.UTF_8));
    String line = output.readLine();
    if (line == null) {
      close();
      throw new HelenusException("the server does not start:\n" + log());
    }
    record = JSON.readTree(line);
    if (record.path("api").asInt() != API) {
      close();
      throw new HelenusException("the server's record has version " + record.path("api") + "; this package reads " + API);
    }
  }

  /** HOST:PORT of CQL without TLS. */
  public String address() {
    return record.path("cql").asText();
  }

  /** A text of the server's record: {@code tls}, {@code account}, {@code key}, {@code certificate_pem}; {@code null} where it has none. */
  public String record(String name) {
    return record.hasNonNull(name) ? record.get(name).asText() : null;
  }

  /** The server's process. */
  public long pid() {
    return child.pid();
  }

  /** The last lines of the server's log. */
  public String log() {
    synchronized (log) {
      return String.join("\n", log);
    }
  }

  /** A session in a keyspace, which it makes where it is missing. The session ends with the test. */
  public CqlSession session(String keyspace) {
    int colon = address().lastIndexOf(':');
    InetSocketAddress contact = new InetSocketAddress(address().substring(0, colon), Integer.parseInt(address().substring(colon + 1)));
    CqlSessionBuilder builder = CqlSession.builder().addContactPoint(contact).withConfigLoader(anyDataCenter());
    CqlSession session = login(builder).build();
    sessions.add(session);
    String name = CqlIdentifier.fromInternal(keyspace).asCql(false);
    session.execute("CREATE KEYSPACE IF NOT EXISTS " + name + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    session.execute("USE " + name);
    return session;
  }

  private static DriverConfigLoader anyDataCenter() {
    return DriverConfigLoader.programmaticBuilder()
        .withClass(DefaultDriverOption.LOAD_BALANCING_POLICY_CLASS, DcInferringLoadBalancingPolicy.class)
        .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, ADMIN_TIME_MAX)
        // By default a session that closes waits two seconds for late work. Zero loses the driver's own last notice and logs that.
        .withString(DefaultDriverOption.NETTY_IO_SHUTDOWN_UNIT, "MILLISECONDS")
        .withInt(DefaultDriverOption.NETTY_IO_SHUTDOWN_QUIET_PERIOD, 50)
        .withInt(DefaultDriverOption.NETTY_IO_SHUTDOWN_TIMEOUT, 15_000)
        .withString(DefaultDriverOption.NETTY_ADMIN_SHUTDOWN_UNIT, "MILLISECONDS")
        .withInt(DefaultDriverOption.NETTY_ADMIN_SHUTDOWN_QUIET_PERIOD, 50)
        .withInt(DefaultDriverOption.NETTY_ADMIN_SHUTDOWN_TIMEOUT, 15_000)
        .build();
  }

  private CqlSessionBuilder login(CqlSessionBuilder builder) {
    return record("account") == null ? builder : builder.withAuthCredentials(record("account"), record("key"));
  }

  /** Moves the clock ahead. Returns when everything that became due is done. */
  public void advance(Duration by) {
    ask("POST", "/api/clock", Map.of("advance_ms", by.toMillis()));
  }

  /** Empties the server, tables too. */
  public void reset() {
    ask("POST", "/api/reset", Map.of());
  }

  /** Empties the server's tables. Prepared statements stay valid. */
  public void resetKeepingSchema() {
    ask("POST", "/api/reset", Map.of("keep", "schema"));
  }

  /** Replaces the fault plan: {@code Map.of("action", "throttle", "count", 1)}. Without faults, ends all. */
  @SafeVarargs
  public final void faults(Map<String, Object>... faults) {
    if (faults.length == 0) {
      ask("DELETE", "/api/faults", null);
    } else {
      ask("POST", "/api/faults", Map.of("seed", 1, "fault", faults));
    }
  }

  /** The fault plan in force: {@code fault} lists its faults, each with its keys, {@code holds}, {@code matched} and {@code hit}. */
  public JsonNode faultPlan() {
    return ask("GET", "/api/faults", null);
  }

  /** How many statements were refused for want of request units. */
  public long throttles() {
    return ask("GET", "/api/status", null).path("throttled").asLong();
  }

  /** The request units that the tables of a keyspace were charged. Refuses a keyspace without tables: its charge would be 0 for ever. */
  public double charge(String keyspace) {
    double sum = 0;
    boolean found = false;
    List<String> known = new ArrayList<>();
    for (JsonNode table : ask("GET", "/api/tables", null).path("tables")) {
      known.add(table.path("keyspace").asText() + "." + table.path("table").asText());
      if (table.path("keyspace").asText().equals(keyspace)) {
        found = true;
        sum += table.path("request_units").asDouble();
      }
    }
    if (!found) {
      throw new HelenusException(
          "there is no table in a keyspace " + keyspace + ", so nothing is charged to it; the tables are: " + String.join(", ", known));
    }
    return sum;
  }

  /** Fails when no statement was refused for want of request units. */
  public void assertThrottled() {
    if (throttles() == 0) {
      throw new AssertionError("the server throttled no statement");
    }
  }

  /** Fails when the work charges the tables of a keyspace more request units than this. */
  public void assertChargeMax(String keyspace, double max, Runnable work) {
    double before = charge(keyspace);
    work.run();
    double spent = charge(keyspace) - before;
    if (spent > max) {
      throw new AssertionError("the charge is " + spent + " request units, more than " + max);
    }
  }

  /** Sends a request to the admin port and returns its answer. */
  public JsonNode ask(String method, String path, Object body) {
    try {
      byte[] sent = body == null ? new byte[0] : JSON.writeValueAsBytes(body);
      HttpRequest request =
          HttpRequest.newBuilder(URI.create("http://" + record("admin") + path))
              .version(HttpClient.Version.HTTP_1_1)
              .timeout(ADMIN_TIME_MAX)
              .header("Authorization", "Bearer " + record("token"))
              .header("Content-Type", "application/json")
              .method(method, HttpRequest.BodyPublishers.ofByteArray(sent))
              .build();
      HttpResponse<String> answer = client.send(request, HttpResponse.BodyHandlers.ofString());
      if (answer.statusCode() / 100 != 2) {
        throw new HelenusException(method + " " + path + ": " + answer.statusCode() + " " + answer.body().strip());
      }
      return JSON.readTree(answer.body());
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      throw new HelenusException(method + " " + path + " was interrupted");
    }
  }

  /** Ends the sessions of {@link #session}. */
  void closeSessions() {
    sessions.forEach(CqlSession::close);
    sessions.clear();
  }

  /** Ends the sessions and the server. */
  @Override
  public void close() {
    closeSessions();
    try {
      child.getOutputStream().close();
      child.waitFor();
      reader.join();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
    }
  }

  private void readLog() {
    try (BufferedReader lines = new BufferedReader(new InputStreamReader(child.getErrorStream(), StandardCharsets.UTF_8))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        synchronized (log) {
          log.addLast(line);
          if (log.size() > LOG_LINES_MAX) {
            log.removeFirst();
          }
        }
      }
    } catch (IOException ended) {
      // The log ends with the server.
    }
  }
}
