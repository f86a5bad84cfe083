import com.azure.cosmos.cassandra.CosmosLoadBalancingPolicy;
import com.azure.cosmos.cassandra.CosmosRetryPolicy;
import com.azure.cosmos.cassandra.CosmosRetryPolicyOption;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.config.DefaultDriverOption;
import com.datastax.oss.driver.api.core.config.DriverConfigLoader;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.Row;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * An application as its makers advise for Azure Cosmos DB for Apache Cassandra: the Java driver 4 with azure-cosmos-cassandra-driver-4-extensions as
 * published, whose reference.conf brings CosmosRetryPolicy, CosmosLoadBalancingPolicy, PLAIN logins and TLS.
 *
 * <p>Arguments: HOST:PORT, trust store, account, key, log of the retry policy. It makes a table of 400 RU/s, asks for more than that, and must
 * complete: every row there; each refusal slept off by the policy for as long as the server said, which is told by the policy's own log on one
 * side and by the server's on the other; and what the policy retries besides,
 * writes that too few replicas are there for, as the server's fault plan makes them.
 */
public final class Application {
    private static final int ROWS = 300;
    private static final int WRITERS = 8;
    private static final double UNITS_PER_SECOND = 400;
    private static final int UNAVAILABLE = 3;
    private static final Pattern SLEPT = Pattern.compile("--> sleeping on .* for PT(?:(\\d+)M)?(?:([0-9.]+)S)? before retrying");

    private static void expect(boolean condition, String what) {
        if (!condition) {
            System.err.println("cosmos: " + what);
            System.exit(1);
        }
    }

    private static double charge(ResultSet answer) {
        ByteBuffer bytes = answer.getExecutionInfo().getIncomingPayload().get("RequestCharge");
        expect(bytes != null, "no RequestCharge");
        return bytes.duplicate().getDouble();
    }

    /** How long the policy slept each time, in milliseconds. */
    private static List<Long> slept(Path log) throws Exception {
        List<Long> slept = new ArrayList<>();
        for (String line : Files.readAllLines(log)) {
            Matcher found = SLEPT.matcher(line);
            if (found.find()) {
                double seconds = found.group(2) == null ? 0 : Double.parseDouble(found.group(2));
                slept.add(Math.round(1000 * (seconds + (found.group(1) == null ? 0 : 60 * Long.parseLong(found.group(1))))));
            }
        }
        return slept;
    }

    public static void main(String[] arguments) throws Exception {
        DriverConfigLoader config = DriverConfigLoader.programmaticBuilder()
                .withStringList(DefaultDriverOption.CONTACT_POINTS, List.of(arguments[0]))
                .withString(DefaultDriverOption.SSL_TRUSTSTORE_PATH, arguments[1])
                .withString(DefaultDriverOption.SSL_TRUSTSTORE_PASSWORD, "helenus")
                .withString(DefaultDriverOption.AUTH_PROVIDER_USER_NAME, arguments[2])
                .withString(DefaultDriverOption.AUTH_PROVIDER_PASSWORD, arguments[3])
                // The driver asks its policy about idempotent statements only; every statement here is.
                .withBoolean(DefaultDriverOption.REQUEST_DEFAULT_IDEMPOTENCE, true)
                // Five unless told otherwise; whoever asks for several times of what there is must be patient.
                .withInt(CosmosRetryPolicyOption.MAX_RETRIES, 30)
                .build();
        Path log = Path.of(arguments[4]);
        try (CqlSession session = CqlSession.builder().withConfigLoader(config).build()) {
            var context = session.getContext();
            expect(context.getRetryPolicy("default") instanceof CosmosRetryPolicy, "another retry policy");
            expect(context.getLoadBalancingPolicy("default") instanceof CosmosLoadBalancingPolicy, "another load balancing policy");
            expect(session.getMetadata().getClusterName().orElse("").equals("CosmosProd"), "another cluster's name");
            run(session, log);
        }
    }

    private static void run(CqlSession session, Path log) throws Exception {
        session.execute("CREATE KEYSPACE IF NOT EXISTS sample WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter': 1}");
        session.execute("CREATE TABLE IF NOT EXISTS sample.java_orders (customer text, id uuid, note text, total decimal, PRIMARY KEY (customer, id)) "
                + "WITH cosmosdb_provisioned_throughput = " + (int) UNITS_PER_SECOND);
        PreparedStatement insert = session.prepare("INSERT INTO sample.java_orders (customer, id, note, total) VALUES (?, ?, ?, ?)");
        PreparedStatement select = session.prepare("SELECT note FROM sample.java_orders WHERE customer = ? AND id = ?");
        DoubleAdder charged = new DoubleAdder();
        ExecutorService writers = Executors.newFixedThreadPool(WRITERS, task -> {
            Thread thread = new Thread(task);
            // So that a failure ends the program.
            thread.setDaemon(true);
            return thread;
        });
        List<Future<?>> orders = new ArrayList<>();
        long began = System.nanoTime();
        for (int number = 0; number < ROWS; number++) {
            String customer = "customer " + number % 20;
            BigDecimal total = BigDecimal.valueOf(number);
            orders.add(writers.submit(() -> {
                UUID id = UUID.randomUUID();
                String note = "n".repeat(1000);
                BoundStatement write = insert.bind(customer, id, note, total);
                charged.add(charge(session.execute(write)));
                ResultSet found = session.execute(select.bind(customer, id));
                charged.add(charge(found));
                Row row = found.one();
                expect(row != null && note.equals(row.getString("note")), "a row is not as written");
            }));
        }
        for (Future<?> order : orders) {
            order.get();
        }
        double seconds = (System.nanoTime() - began) / 1e9;
        writers.shutdown();

        List<Long> slept = slept(log);
        // What the server says it has told; the last thousand, and not those that met one another at the log.
        List<Long> told = new ArrayList<>();
        for (Row row : session.execute("SELECT table_name, retry_after_ms FROM system_cosmos.throttles WHERE keyspace_name = 'sample'")) {
            if (row.getString("table_name").equals("java_orders")) {
                told.add((long) row.getInt("retry_after_ms"));
            }
        }
        expect(!told.isEmpty(), "nothing was refused, so nothing was retried");
        Map<Long, Integer> left = new HashMap<>();
        slept.forEach(millis -> left.merge(millis, 1, Integer::sum));
        for (Long millis : told) {
            expect(left.merge(millis, -1, Integer::sum) >= 0, "told to come again after " + millis + " ms, and not slept for that: " + slept);
        }
        long failed = Files.lines(log).filter(line -> line.contains("onUnavailable(")).count();
        expect(failed == UNAVAILABLE, failed + " writes without replicas");
        expect(slept.size() >= told.size(), slept.size() + " sleeps, " + told.size() + " refusals");

        int count = 0;
        for (Row ignored : session.execute("SELECT id FROM sample.java_orders")) {
            count++;
        }
        expect(count == ROWS, count + " rows");
        // A second's worth is there at the beginning, and each of those at work may borrow once.
        expect(charged.sum() <= UNITS_PER_SECOND * (seconds + 2), charged.sum() + " RU in " + seconds + " s");
        long most = told.stream().mapToLong(Long::longValue).max().orElse(0);
        System.out.printf(
                "cosmos: Java extension 1.1.2: %d orders written and read in %.1f s, %.0f RU at %.0f RU/s; the policy slept %d times, %d of them "
                        + "as the server's log says it told (1 to %d ms); %d writes met too few replicas and were sent again%n",
                ROWS, seconds, charged.sum(), UNITS_PER_SECOND, slept.size(), told.size(), most, failed);
    }
}
