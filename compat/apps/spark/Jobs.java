import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.spark.connector.cql.CassandraConnector;
import com.datastax.spark.connector.japi.CassandraJavaUtil;
import com.datastax.spark.connector.japi.CassandraRow;
import com.datastax.spark.connector.japi.rdd.CassandraTableScanJavaRDD;
import com.datastax.spark.connector.writer.WriteConf;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;
import scala.Tuple1;
import scala.Tuple2;

/** Jobs of the Spark connector on two threads: each reads or writes tables in a way that sends other statements. */
public class Jobs {
    private static final String KEYSPACE = "apps_spark";
    private static final int ROWS = 2000;
    private static SparkSession spark;
    private static JavaSparkContext context;
    private static int failed;

    public static void main(String[] arguments) {
        spark = SparkSession.builder().master("local[2]").appName("jobs")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "4")
            .config("spark.cassandra.connection.host", arguments[0])
            .config("spark.cassandra.connection.port", arguments[1])
            .config("spark.cassandra.connection.localDC", "datacenter1")
            .config("spark.cassandra.read.timeoutMS", "30000")
            .config("spark.sql.extensions", "com.datastax.spark.connector.CassandraSparkExtensions")
            .config("spark.sql.catalog.cass", "com.datastax.spark.connector.datasource.CassandraCatalog")
            .getOrCreate();
        context = new JavaSparkContext(spark.sparkContext());
        prepare();

        test("append rows", () -> {
            spark.range(ROWS).selectExpr("id % 50 AS device", "id AS moment", "concat('v', id) AS text", "cast(id AS double) / 4 AS measure")
                .write().format("org.apache.spark.sql.cassandra").options(table("events")).mode(SaveMode.Append).save();
            return same(ROWS, cql("SELECT count(*) FROM apps_spark.events"));
        });
        test("read the whole table by token ranges", () -> same(ROWS, read("events").count()));
        test("count in Cassandra", () -> same(ROWS, rows("events").cassandraCount()));
        test("read in many splits", () -> {
            Dataset<Row> small = spark.read().format("org.apache.spark.sql.cassandra").options(table("events"))
                .option("spark.cassandra.input.split.sizeInMB", "1").option("spark.cassandra.input.fetch.sizeInRows", "7").load();
            return same(ROWS * (ROWS - 1L) / 2, small.selectExpr("sum(moment)").first().getLong(0));
        });
        test("push a partition key", () -> same(ROWS / 50, read("events").where("device = 7").count()));
        test("push partition keys with IN", () -> same(3 * ROWS / 50, read("events").where("device IN (1, 2, 3)").count()));
        test("push a range of a clustering column", () -> same(10, read("events").where("device = 7 AND moment < 500").count()));
        test("filter what cannot be pushed", () -> same(1, read("events").where("text = 'v77'").count()));
        test("push an indexed column", () -> same(4, read("people").where("city = 'Riga'").count()));
        test("select columns with where and limit", () -> same(5, rows("events").select("moment").where("device = ?", 7L).limit(5L).collect().size()));
        test("order of clustering columns", () -> {
            List<CassandraRow> all = rows("events").select("moment").where("device = 7").withDescOrder().collect();
            return same(1957, all.get(0).getLong("moment")) && same(7, all.get(all.size() - 1).getLong("moment"));
        });
        test("writetime and ttl", () -> {
            spark.range(10).selectExpr("1000 + id AS device", "id AS moment", "'x' AS text", "1.0 AS measure").write()
                .format("org.apache.spark.sql.cassandra").options(table("events")).option("spark.cassandra.output.ttl", "5000")
                .option("spark.cassandra.output.timestamp", "12345").mode(SaveMode.Append).save();
            Row row = spark.sql("SELECT writetime(text), ttl(text) FROM cass.apps_spark.events WHERE device = 1003").first();
            return same(12345, row.getLong(0)) && row.getInt(1) > 4000 && row.getInt(1) <= 5000;
        });
        test("direct join of a dataset", () -> {
            Dataset<Row> keys = spark.range(5).selectExpr("id AS device", "id AS moment");
            Dataset<Row> events = spark.read().format("org.apache.spark.sql.cassandra").options(table("events")).option("directJoinSetting", "on").load();
            Dataset<Row> joined = keys.join(events, keys.col("device").equalTo(events.col("device")).and(keys.col("moment").equalTo(events.col("moment"))));
            return joined.queryExecution().executedPlan().toString().contains("Cassandra Direct Join") && same(5, joined.count());
        });
        test("joinWithCassandraTable", () -> {
            List<Tuple1<Long>> keys = new ArrayList<>();
            for (long device = 0; device < 10; device++) keys.add(new Tuple1<>(device));
            return same(10 * ROWS / 50, CassandraJavaUtil.javaFunctions(context.parallelize(keys)).joinWithCassandraTable(KEYSPACE, "events",
                CassandraJavaUtil.someColumns("moment"), CassandraJavaUtil.someColumns("device"),
                CassandraJavaUtil.mapRowToTuple(Long.class), CassandraJavaUtil.mapTupleToRow(Long.class)).count());
        });
        test("span by partition key", () -> same(50, rows("events").spanBy(row -> row.getLong("device"), Long.class).filter(each -> each._1() < 1000).count()));
        test("every type there and back", () -> {
            read("types").write().format("org.apache.spark.sql.cassandra").options(table("types_copy")).mode(SaveMode.Append).save();
            return same(3, cql("SELECT count(*) FROM apps_spark.types_copy")) && read("types").exceptAll(read("types_copy")).isEmpty();
        });
        test("collections and user types", () -> {
            read("nested").write().format("org.apache.spark.sql.cassandra").options(table("nested_copy")).mode(SaveMode.Append).save();
            return same(1, read("nested_copy").where("place.street = 'A' AND size(tags) = 2 AND scores['b'] = 2").count());
        });
        test("append to a set", () -> {
            spark.sql("SELECT 1 AS id, array('z') AS tags").write().format("org.apache.spark.sql.cassandra").options(table("nested_copy"))
                .option("spark.cassandra.output.ignoreNulls", "true").mode(SaveMode.Append).save();
            return same(1, cql("SELECT count(*) FROM apps_spark.nested_copy WHERE id = 1"));
        });
        test("counters", () -> {
            for (int turn = 0; turn < 2; turn++) {
                spark.range(20).selectExpr("id", "id AS hits").write().format("org.apache.spark.sql.cassandra").options(table("counts")).mode(SaveMode.Append).save();
            }
            return same(2 * 190, read("counts").selectExpr("sum(hits)").first().getLong(0));
        });
        test("leave nulls unset", () -> {
            spark.sql("SELECT 9 AS id, cast(null AS string) AS city").write().format("org.apache.spark.sql.cassandra").options(table("people"))
                .option("spark.cassandra.output.ignoreNulls", "true").mode(SaveMode.Append).save();
            return same(1, read("people").where("id = 9 AND city = 'Oslo'").count());
        });
        test("write if not exists", () -> {
            spark.sql("SELECT 9 AS id, 'Bern' AS city").write().format("org.apache.spark.sql.cassandra").options(table("people"))
                .option("spark.cassandra.output.ifNotExists", "true").mode(SaveMode.Append).save();
            return same(1, read("people").where("id = 9 AND city = 'Oslo'").count());
        });
        test("delete rows", () -> {
            CassandraTableScanJavaRDD<CassandraRow> some = rows("events").select("device", "moment").where("device = ?", 1000L);
            CassandraJavaUtil.javaFunctions(some.map(row -> new Tuple2<>(row.getLong("device"), row.getLong("moment")))).deleteFromCassandra(KEYSPACE, "events",
                CassandraJavaUtil.mapTupleToRow(Long.class, Long.class), CassandraJavaUtil.someColumns(), CassandraJavaUtil.someColumns("device", "moment"),
                WriteConf.fromSparkConf(context.getConf()), CassandraConnector.apply(context.getConf()));
            return same(0, read("events").where("device = 1000").count()) && same(1, read("events").where("device = 1001").count());
        });
        test("overwrite truncates", () -> {
            spark.sql("SELECT 1 AS id, 'Rome' AS city").write().format("org.apache.spark.sql.cassandra").options(table("people"))
                .option("confirm.truncate", "true").mode(SaveMode.Overwrite).save();
            return same(1, read("people").count());
        });
        test("catalog: keyspaces and tables", () -> spark.sql("SHOW TABLES FROM cass.apps_spark").filter("tableName = 'events'").count() == 1
            && spark.sql("SHOW NAMESPACES FROM cass").filter("namespace = 'apps_spark'").count() == 1);
        test("catalog: create, insert, alter, drop", () -> {
            spark.sql("CREATE TABLE cass.apps_spark.made (id int, at timestamp, name string) USING cassandra "
                + "PARTITIONED BY (id) TBLPROPERTIES (clustering_key='at.desc', compaction='{class=SizeTieredCompactionStrategy,bucket_high=1001}')");
            spark.sql("INSERT INTO cass.apps_spark.made SELECT 1 AS id, timestamp'2024-01-01 00:00:00' AS at, 'one' AS name");
            spark.sql("INSERT INTO cass.apps_spark.made SELECT 1 AS id, timestamp'2024-01-02 00:00:00' AS at, 'two' AS name");
            spark.sql("ALTER TABLE cass.apps_spark.made ADD COLUMN extra int");
            long rows = spark.sql("SELECT * FROM cass.apps_spark.made WHERE extra IS NULL").count();
            spark.sql("DROP TABLE cass.apps_spark.made");
            return same(2, rows);
        });
        test("aggregate and group", () -> same(50, read("events").where("device < 1000").groupBy("device").avg("measure").count()));
        spark.stop();
        System.exit(failed == 0 ? 0 : 1);
    }

    private static void prepare() {
        try (CqlSession session = CassandraConnector.apply(spark.sparkContext().getConf()).openSession()) {
            for (String statement : List.of(
                "DROP KEYSPACE IF EXISTS apps_spark",
                "CREATE KEYSPACE apps_spark WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
                "CREATE TABLE apps_spark.events (device bigint, moment bigint, text text, measure double, PRIMARY KEY (device, moment))",
                "CREATE TABLE apps_spark.people (id int PRIMARY KEY, city text)",
                "CREATE INDEX ON apps_spark.people (city)",
                "CREATE TABLE apps_spark.counts (id bigint PRIMARY KEY, hits counter)",
                "CREATE TYPE apps_spark.place (street text, number int)")) {
                session.execute(statement);
            }
            String types = " (id int PRIMARY KEY, a ascii, b bigint, bl blob, bo boolean, d date, de decimal, dou double, f float, i inet, "
                + "s smallint, te text, ti time, ts timestamp, tu timeuuid, t tinyint, u uuid, v varint)";
            String nested = " (id int PRIMARY KEY, tags set<text>, list list<int>, scores map<text, int>, place frozen<place>, pair tuple<int, text>)";
            for (String suffix : List.of("", "_copy")) {
                session.execute("CREATE TABLE apps_spark.types" + suffix + types);
                session.execute("CREATE TABLE apps_spark.nested" + suffix + nested);
            }
            for (int id = 0; id < 2; id++) {
                session.execute("INSERT INTO apps_spark.types (id, a, b, bl, bo, d, de, dou, f, i, s, te, ti, ts, tu, t, u, v) VALUES (" + id
                    + ", 'a', -5, 0xff00, true, '2024-02-29', 12.5, 1.5, 2.5, '10.0.0.1', 3, 'é', '12:00:00', '2024-02-29T12:00:00Z', "
                    + "50554d6e-29bb-11e5-b345-feff819cdc9f, 4, 123e4567-e89b-12d3-a456-426614174000, 99999)");
            }
            session.execute("INSERT INTO apps_spark.types (id) VALUES (2)");
            session.execute("INSERT INTO apps_spark.nested (id, tags, list, scores, place, pair) VALUES "
                + "(1, {'x', 'y'}, [1, 2, 3], {'a': 1, 'b': 2}, {street: 'A', number: 1}, (1, 'one'))");
            for (int id = 0; id < 10; id++) {
                session.execute("INSERT INTO apps_spark.people (id, city) VALUES (" + id + ", '" + (id < 4 ? "Riga" : "Oslo") + "')");
            }
        }
    }

    private static Map<String, String> table(String name) {
        return Map.of("keyspace", KEYSPACE, "table", name);
    }

    private static Dataset<Row> read(String name) {
        return spark.read().format("org.apache.spark.sql.cassandra").options(table(name)).load();
    }

    private static CassandraTableScanJavaRDD<CassandraRow> rows(String name) {
        return CassandraJavaUtil.javaFunctions(context).cassandraTable(KEYSPACE, name);
    }

    private static long cql(String statement) {
        try (CqlSession session = CassandraConnector.apply(spark.sparkContext().getConf()).openSession()) {
            return session.execute(statement).one().getLong(0);
        }
    }

    private static boolean same(long expected, long given) {
        if (expected != given) System.err.println("expected " + expected + ", given " + given);
        return expected == given;
    }

    private static void test(String name, Callable<Boolean> body) {
        boolean good = false;
        try {
            good = body.call();
        } catch (Throwable fault) {
            fault.printStackTrace();
        }
        if (!good) failed++;
        System.out.println((good ? "PASS " : "FAIL ") + name);
    }
}
