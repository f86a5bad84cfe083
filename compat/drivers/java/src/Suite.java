// What an application does through the Java driver. `Suite HOST:PORT`; a line for each test and
// `java: N passed, N failed` at the end.

import com.datastax.oss.driver.api.core.AllNodesFailedException;
import com.datastax.oss.driver.api.core.CqlIdentifier;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.CqlSessionBuilder;
import com.datastax.oss.driver.api.core.DefaultConsistencyLevel;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.config.ProgrammaticDriverConfigLoaderBuilder;
import com.datastax.oss.driver.api.core.cql.AsyncResultSet;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BatchStatementBuilder;
import com.datastax.oss.driver.api.core.cql.BatchType;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.data.CqlDuration;
import com.datastax.oss.driver.api.core.data.CqlVector;
import com.datastax.oss.driver.api.core.data.TupleValue;
import com.datastax.oss.driver.api.core.data.UdtValue;
import com.datastax.oss.driver.api.core.metadata.Node;
import com.datastax.oss.driver.api.core.metadata.TokenMap;
import com.datastax.oss.driver.api.core.metadata.schema.ClusteringOrder;
import com.datastax.oss.driver.api.core.metadata.schema.KeyspaceMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import com.datastax.oss.driver.api.core.metadata.token.Token;
import com.datastax.oss.driver.api.core.servererrors.AlreadyExistsException;
import com.datastax.oss.driver.api.core.servererrors.InvalidQueryException;
import com.datastax.oss.driver.api.core.servererrors.SyntaxError;
import com.datastax.oss.driver.api.core.type.TupleType;
import com.datastax.oss.driver.api.core.type.UserDefinedType;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletionStage;
import java.util.function.BooleanSupplier;

public class Suite {
  static final String KS = "compat_java";
  static InetSocketAddress address;

  interface Test {
    void run(CqlSession session) throws Exception;
  }

  static CqlSessionBuilder builder(String version, String compression) {
    ProgrammaticDriverConfigLoaderBuilder config =
        DriverConfigLoader.programmaticBuilder()
            .withDuration(DefaultDriverOption.REQUEST_TIMEOUT, Duration.ofSeconds(20))
            .withDuration(DefaultDriverOption.CONNECTION_INIT_QUERY_TIMEOUT, Duration.ofSeconds(20))
            .withDuration(DefaultDriverOption.METADATA_SCHEMA_WINDOW, Duration.ofMillis(100));
    if (version != null) config = config.withString(DefaultDriverOption.PROTOCOL_VERSION, version);
    if (compression != null) config = config.withString(DefaultDriverOption.PROTOCOL_COMPRESSION, compression);
    return CqlSession.builder()
        .addContactPoint(address)
        .withLocalDatacenter("datacenter1")
        .withConfigLoader(config.build());
  }

  static void same(Object got, Object expected) {
    if (!Objects.equals(got, expected)) throw new AssertionError("expected " + expected + ", got " + got);
  }

  static void fails(CqlSession session, String statement, Class<?> kind) {
    try {
      session.execute(statement);
    } catch (RuntimeException e) {
      if (kind.isInstance(e)) return;
      throw e;
    }
    throw new AssertionError(statement + " succeeded");
  }

  static void seen(BooleanSupplier holds) throws Exception {
    for (int i = 0; i < 100; i++) {
      if (holds.getAsBoolean()) return;
      Thread.sleep(100);
    }
    throw new AssertionError("not within ten seconds");
  }

  static ByteBuffer bytes(int... all) {
    ByteBuffer buffer = ByteBuffer.allocate(all.length);
    for (int b : all) buffer.put((byte) b);
    buffer.flip();
    return buffer;
  }

  static void types(CqlSession session) throws Exception {
    Map<String, List<Object>> values = new LinkedHashMap<>();
    values.put("ascii", List.of("", "abc"));
    values.put("bigint", List.of(0L, Long.MIN_VALUE, Long.MAX_VALUE));
    values.put("blob", List.of(bytes(), bytes(0, 255)));
    values.put("boolean", List.of(true, false));
    values.put("date", List.of(LocalDate.of(2020, 2, 29), LocalDate.of(1969, 12, 31)));
    values.put("decimal", List.of(new BigDecimal("-1.50"), new BigDecimal("1E+10")));
    values.put("double", List.of(0.0, -1.5e300, Double.POSITIVE_INFINITY));
    values.put("duration", List.of(CqlDuration.newInstance(1, 2, 3)));
    values.put("float", List.of(0.5f, -1f));
    values.put("inet", List.of(InetAddress.getByName("127.0.0.1"), InetAddress.getByName("::1")));
    values.put("int", List.of(0, Integer.MIN_VALUE, Integer.MAX_VALUE));
    values.put("smallint", List.of(Short.MIN_VALUE, Short.MAX_VALUE));
    values.put("text", List.of("", "é日本😀", "x".repeat(100_000)));
    values.put("time", List.of(LocalTime.MIDNIGHT, LocalTime.MAX));
    values.put("timestamp", List.of(Instant.parse("2020-02-29T01:02:03.004Z")));
    values.put("timeuuid", List.of(UUID.fromString("50554d6e-29bb-11e5-b345-feff819cdc9f")));
    values.put("tinyint", List.of((byte) -128, (byte) 127));
    values.put("uuid", List.of(UUID.fromString("123e4567-e89b-42d3-a456-426614174000")));
    values.put("varint", List.of(new BigInteger("340282366920938463463374607431768211456"), BigInteger.valueOf(-129)));
    values.put("list<int>", List.of(List.of(1, 2, 1)));
    values.put("set<text>", List.of(Set.of("a", "b")));
    values.put("map<text, int>", List.of(Map.of("a", 1, "b", 2)));
    values.put("frozen<list<int>>", List.of(List.of(), List.of(3, 1)));
    values.put("map<int, frozen<list<text>>>", List.of(Map.of(1, List.of("a"), 2, List.of("b", "c"))));
    values.put("vector<float, 3>", List.of(CqlVector.newInstance(1f, 2f, 3.5f)));
    int number = 0;
    for (Map.Entry<String, List<Object>> entry : values.entrySet()) {
      String table = KS + ".type_" + number++;
      session.execute("CREATE TABLE " + table + " (k int PRIMARY KEY, v " + entry.getKey() + ")");
      PreparedStatement insert = session.prepare("INSERT INTO " + table + " (k, v) VALUES (?, ?)");
      PreparedStatement select = session.prepare("SELECT v FROM " + table + " WHERE k = ?");
      List<Object> all = new ArrayList<>(entry.getValue());
      for (int k = 0; k < all.size(); k++) {
        session.execute(insert.bind(k, all.get(k)));
        same(session.execute(select.bind(k)).one().getObject("v"), all.get(k));
      }
      session.execute(insert.bind(99, null));
    }
    session.execute("CREATE TABLE " + KS + ".tuples (k int PRIMARY KEY, v tuple<int, text>)");
    PreparedStatement insert = session.prepare("INSERT INTO " + KS + ".tuples (k, v) VALUES (?, ?)");
    TupleValue tuple = ((TupleType) insert.getVariableDefinitions().get(1).getType()).newValue(1, "a");
    session.execute(insert.bind(1, tuple));
    same(session.execute("SELECT v FROM " + KS + ".tuples").one().getTupleValue(0), tuple);
  }

  static void paging(CqlSession session) {
    session.execute("CREATE TABLE " + KS + ".pages (k int, c int, PRIMARY KEY (k, c))");
    PreparedStatement insert = session.prepare("INSERT INTO " + KS + ".pages (k, c) VALUES (1, ?)");
    for (int c = 0; c < 100; c++) session.execute(insert.bind(c));
    for (int size : new int[] {1, 7, 50, 100, 1000}) {
      int expected = 0;
      SimpleStatement query = SimpleStatement.newInstance("SELECT c FROM " + KS + ".pages WHERE k = 1").setPageSize(size);
      for (Row row : session.execute(query)) same(row.getInt(0), expected++);
      same(expected, 100);
    }
    SimpleStatement query = SimpleStatement.newInstance("SELECT c FROM " + KS + ".pages").setPageSize(10);
    ByteBuffer state = session.execute(query).getExecutionInfo().getPagingState();
    same(session.execute(query.setPagingState(state)).one().getInt(0), 10);
  }

  static void prepared(CqlSession session) {
    session.execute("CREATE TABLE " + KS + ".prep (a int, b text, c int, v int, PRIMARY KEY ((a, b), c))");
    PreparedStatement insert = session.prepare("INSERT INTO " + KS + ".prep (c, b, a, v) VALUES (?, ?, ?, ?)");
    same(insert.getPartitionKeyIndices(), List.of(2, 1));
    session.execute(insert.bind(1, "x", 2, 3));
    session.execute(insert.boundStatementBuilder().setInt("a", 2).setString("b", "x").setInt("c", 2).build());
    PreparedStatement select = session.prepare("SELECT * FROM " + KS + ".prep WHERE a = :a AND b = :b");
    BoundStatement bound = select.bind().setInt("a", 2).setString("b", "x");
    List<Row> rows = session.execute(bound).all();
    same(rows.size(), 2);
    same(rows.get(0).getInt("v"), 3);
    same(rows.get(1).isNull("v"), true);
    session.execute("ALTER TABLE " + KS + ".prep ADD w text");
    rows = session.execute(bound).all();
    same(rows.get(0).getInt("v"), 3);
    same(rows.get(0).getColumnDefinitions().size(), 5);
  }

  static void manyInFlight(CqlSession session) throws Exception {
    session.execute("CREATE TABLE " + KS + ".many (k int PRIMARY KEY, v int)");
    PreparedStatement insert = session.prepare("INSERT INTO " + KS + ".many (k, v) VALUES (?, ?)");
    for (int round = 0; round < 10; round++) {
      List<CompletionStage<AsyncResultSet>> stages = new ArrayList<>();
      for (int i = 0; i < 200; i++) stages.add(session.executeAsync(insert.bind(round * 200 + i, i)));
      for (CompletionStage<AsyncResultSet> stage : stages) stage.toCompletableFuture().get();
    }
    same(session.execute("SELECT count(*) FROM " + KS + ".many").one().getLong(0), 2000L);
  }

  static void batches(CqlSession session) {
    session.execute("CREATE TABLE " + KS + ".batched (k int, c int, v text, PRIMARY KEY (k, c))");
    PreparedStatement insert = session.prepare("INSERT INTO " + KS + ".batched (k, c, v) VALUES (?, ?, ?)");
    BatchStatementBuilder batch = BatchStatement.builder(BatchType.LOGGED);
    for (int c = 0; c < 10; c++) batch.addStatement(insert.bind(1, c, "" + c));
    batch.addStatement(SimpleStatement.newInstance("INSERT INTO " + KS + ".batched (k, c, v) VALUES (1, 10, ?)", "ten"));
    session.execute(batch.build());
    same(session.execute("SELECT count(*) FROM " + KS + ".batched").one().getLong(0), 11L);
    session.execute("CREATE TABLE " + KS + ".counted (k int PRIMARY KEY, n counter)");
    PreparedStatement count = session.prepare("UPDATE " + KS + ".counted SET n = n + ? WHERE k = 1");
    session.execute(BatchStatement.newInstance(BatchType.COUNTER, count.bind(5L), count.bind(6L)));
    same(session.execute("SELECT n FROM " + KS + ".counted").one().getLong(0), 11L);
  }

  static void conditional(CqlSession session) {
    session.execute("CREATE TABLE " + KS + ".lwt (k int PRIMARY KEY, v int)");
    same(session.execute("INSERT INTO " + KS + ".lwt (k, v) VALUES (1, 1) IF NOT EXISTS").wasApplied(), true);
    ResultSet again = session.execute("INSERT INTO " + KS + ".lwt (k, v) VALUES (1, 2) IF NOT EXISTS");
    same(again.wasApplied(), false);
    same(again.one().getInt("v"), 1);
  }

  static void userTypes(CqlSession session) throws Exception {
    session.execute("CREATE TYPE " + KS + ".address (street text, number int, tags frozen<set<text>>)");
    session.execute("CREATE TABLE " + KS + ".people (k int PRIMARY KEY, a address, l list<frozen<address>>)");
    seen(() -> session.getMetadata().getKeyspace(KS).flatMap(k -> k.getUserDefinedType("address")).isPresent());
    UserDefinedType type = session.getMetadata().getKeyspace(KS).get().getUserDefinedType("address").get();
    UdtValue value = type.newValue("s", 5, Set.of("x"));
    PreparedStatement insert = session.prepare("INSERT INTO " + KS + ".people (k, a, l) VALUES (?, ?, ?)");
    session.execute(insert.bind(1, value, List.of(value)));
    Row row = session.execute("SELECT a, l FROM " + KS + ".people").one();
    same(row.getUdtValue("a").getString("street"), "s");
    same(row.getUdtValue("a").getSet("tags", String.class), Set.of("x"));
    same(row.getList("l", UdtValue.class).get(0).getInt("number"), 5);
  }

  static void metadata(CqlSession session) throws Exception {
    session.execute(
        "CREATE TABLE " + KS + ".meta (a int, b text, c timeuuid, d int, s int static, v list<int>,"
            + " PRIMARY KEY ((a, b), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC) AND comment = 'told'");
    seen(() -> session.getMetadata().getKeyspace(KS).flatMap(k -> k.getTable("meta")).isPresent());
    KeyspaceMetadata keyspace = session.getMetadata().getKeyspace(KS).get();
    TableMetadata table = keyspace.getTable("meta").get();
    same(table.getPartitionKey().get(1).getName().asInternal(), "b");
    same(new ArrayList<>(table.getClusteringColumns().values()), Arrays.asList(ClusteringOrder.DESC, ClusteringOrder.ASC));
    same(table.getOptions().get(CqlIdentifier.fromCql("comment")), "told");
    same(table.getColumn("s").get().isStatic(), true);
    same(table.getColumn("v").get().getType().asCql(false, false), "list<int>");
    same(table.describe(false).startsWith("CREATE TABLE"), true);
    Node node = session.getMetadata().getNodes().values().iterator().next();
    same(node.getDatacenter() + "/" + node.getRack(), "datacenter1/rack1");
    same(session.getMetadata().getClusterName().isPresent(), true);
    same(session.checkSchemaAgreement(), true);
  }

  static void schemaEvents(CqlSession session) throws Exception {
    try (CqlSession other = builder(null, null).build()) {
      session.execute("CREATE TABLE " + KS + ".event (k int PRIMARY KEY)");
      seen(() -> other.getMetadata().getKeyspace(KS).get().getTable("event").isPresent());
      session.execute("ALTER TABLE " + KS + ".event ADD v text");
      seen(() -> other.getMetadata().getKeyspace(KS).get().getTable("event").get().getColumn("v").isPresent());
      session.execute("DROP TABLE " + KS + ".event");
      seen(() -> other.getMetadata().getKeyspace(KS).get().getTable("event").isEmpty());
    }
  }

  static void tokens(CqlSession session) throws Exception {
    session.execute("CREATE TABLE " + KS + ".tok (a int, b text, PRIMARY KEY ((a, b)))");
    PreparedStatement insert = session.prepare("INSERT INTO " + KS + ".tok (a, b) VALUES (?, ?)");
    PreparedStatement select = session.prepare("SELECT token(a, b) FROM " + KS + ".tok WHERE a = ? AND b = ?");
    TokenMap map = session.getMetadata().getTokenMap().get();
    for (int i = 0; i < 60; i++) {
      BoundStatement bound = insert.bind(i, "é".repeat(i));
      session.execute(bound);
      Token token = session.execute(select.bind(i, "é".repeat(i))).one().getToken(0);
      same(map.newToken(new ByteBuffer[] {bytes(0, 0, 0, i), ByteBuffer.wrap("é".repeat(i).getBytes(java.nio.charset.StandardCharsets.UTF_8))}), token);
      seen(() -> session.getMetadata().getTokenMap().get().getReplicas(KS, token).size() == 1);
      same(bound.getRoutingKey() != null, true);
    }
  }

  static void errors(CqlSession session) {
    fails(session, "SELEC * FROM t", SyntaxError.class);
    fails(session, "SELECT * FROM " + KS + ".nothing", InvalidQueryException.class);
    fails(session, "CREATE TABLE " + KS + ".many (k int PRIMARY KEY)", AlreadyExistsException.class);
  }

  static void tracing(CqlSession session) {
    ResultSet done = session.execute(SimpleStatement.newInstance("SELECT * FROM " + KS + ".many LIMIT 1").setTracing(true));
    same(done.getExecutionInfo().getQueryTrace().getEvents().isEmpty(), false);
  }

  static void versions(CqlSession unused) {
    for (String version : List.of("V3", "V4", "V5")) {
      for (String compression : List.of("none", "lz4")) {
        try (CqlSession session = builder(version, compression).withKeyspace(KS).build()) {
          same(session.getContext().getProtocolVersion().toString(), version);
          String text = "z".repeat(200_000);
          session.execute(SimpleStatement.newInstance("INSERT INTO type_12 (k, v) VALUES (?, ?)", 50, text));
          same(session.execute("SELECT v FROM type_12 WHERE k = 50").one().getString(0), text);
        }
      }
    }
  }

  static void perQueryKeyspace(CqlSession unused) {
    try (CqlSession session = builder("V5", null).build()) {
      SimpleStatement query = SimpleStatement.newInstance("SELECT v FROM many WHERE k = 7").setKeyspace(KS);
      same(session.execute(query).one().getInt(0), 7);
      PreparedStatement prepared = session.prepare(SimpleStatement.newInstance("SELECT v FROM many WHERE k = ?").setKeyspace(KS));
      same(session.execute(prepared.bind(8)).one().getInt(0), 8);
      same(session.execute(query.setConsistencyLevel(DefaultConsistencyLevel.QUORUM)).one().getInt(0), 7);
    }
  }

  public static void main(String[] args) {
    int colon = args[0].lastIndexOf(':');
    address = new InetSocketAddress(args[0].substring(0, colon), Integer.parseInt(args[0].substring(colon + 1)));
    Map<String, Test> tests = new LinkedHashMap<>();
    tests.put("types", Suite::types);
    tests.put("paging", Suite::paging);
    tests.put("prepared statements", Suite::prepared);
    tests.put("many in flight", Suite::manyInFlight);
    tests.put("batches", Suite::batches);
    tests.put("conditional updates", Suite::conditional);
    tests.put("user types", Suite::userTypes);
    tests.put("metadata", Suite::metadata);
    tests.put("schema events", Suite::schemaEvents);
    tests.put("token awareness", Suite::tokens);
    tests.put("errors", Suite::errors);
    tests.put("tracing", Suite::tracing);
    tests.put("versions and compression", Suite::versions);
    tests.put("keyspace of a request", Suite::perQueryKeyspace);
    int failed = 0;
    try (CqlSession session = builder(null, null).build()) {
      session.execute("DROP KEYSPACE IF EXISTS " + KS);
      session.execute("CREATE KEYSPACE " + KS + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
      for (Map.Entry<String, Test> entry : tests.entrySet()) {
        try {
          entry.getValue().run(session);
          System.out.println("PASS " + entry.getKey());
        } catch (Throwable e) {
          failed++;
          String text = String.valueOf(e).replace('\n', ' ');
          System.out.println("FAIL " + entry.getKey() + ": " + text.substring(0, Math.min(300, text.length())));
        }
      }
      session.execute("DROP KEYSPACE " + KS);
    } catch (AllNodesFailedException e) {
      System.out.println("FAIL to start: " + e);
      failed = tests.size();
    }
    System.out.println("java: " + (tests.size() - failed) + " passed, " + failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }
}
