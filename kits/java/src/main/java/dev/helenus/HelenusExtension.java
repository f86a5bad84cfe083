package dev.helenus;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Gives a test method an empty {@link Helenus}: no faults, full budgets, today's time, no rows. Tables that earlier tests made are there, and
 * empty.
 *
 * <pre>{@code
 * @ExtendWith(HelenusExtension.class)
 * class CartTest {
 *   @Test
 *   void expires(Helenus server) { CqlSession cql = server.session("shop"); … }
 * }
 * }</pre>
 *
 * <p>Tests that run at the same time get a server each; later tests use these again. When a test fails, the last lines of the server's log go
 * to standard error. {@code @RegisterExtension static HelenusExtension helenus = HelenusExtension.with("--nodes=4")} gives servers with settings.
 */
public final class HelenusExtension implements ParameterResolver, AfterEachCallback {
  private static final ExtensionContext.Namespace NAMESPACE = ExtensionContext.Namespace.create(HelenusExtension.class);

  /** The servers that no test has at the moment, by their arguments. There are never more than tests ran at the same time. */
  private static final Map<List<String>, Deque<Helenus>> IDLE = new HashMap<>();

  private final List<String> arguments;

  /** Servers that are a plain Cassandra. */
  public HelenusExtension() {
    this(List.of());
  }

  private HelenusExtension(List<String> arguments) {
    this.arguments = arguments;
  }

  /** Servers with these arguments. */
  public static HelenusExtension with(String... arguments) {
    return new HelenusExtension(List.of(arguments));
  }

  /** Servers that behave as Azure Cosmos DB for Apache Cassandra does, with TLS and an account. */
  public static HelenusExtension cosmos() {
    return with("--profile", "cosmos", "--tls-listen", "127.0.0.1:0");
  }

  @Override
  public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
    return parameter.getParameter().getType() == Helenus.class && context.getTestMethod().isPresent();
  }

  @Override
  public Helenus resolveParameter(ParameterContext parameter, ExtensionContext context) {
    return context.getStore(NAMESPACE).getOrComputeIfAbsent(Lent.class, key -> new Lent(lend()), Lent.class).server;
  }

  @Override
  public void afterEach(ExtensionContext context) {
    Lent lent = context.getStore(NAMESPACE).get(Lent.class, Lent.class);
    if (lent == null) {
      return;
    }
    Helenus server = lent.server;
    context.getExecutionException().ifPresent(error -> System.err.println("the last lines of the Helenus log:\n" + server.log()));
    server.closeSessions();
    synchronized (IDLE) {
      IDLE.computeIfAbsent(arguments, key -> new ArrayDeque<>()).push(server);
    }
  }

  private Helenus lend() {
    Helenus server;
    synchronized (IDLE) {
      Deque<Helenus> free = IDLE.getOrDefault(arguments, new ArrayDeque<>());
      server = free.poll();
    }
    if (server == null) {
      return Helenus.start(arguments.toArray(String[]::new));
    }
    server.resetKeepingSchema();
    return server;
  }

  /** What the store of a test holds. JUnit 5.13 closes an AutoCloseable there, and the next test needs the server. */
  private record Lent(Helenus server) {}
}
