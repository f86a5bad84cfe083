// What an application does with Azure's library for tables in Java, against any table storage.
//
// App.java CONNECTION-STRING [throttle]; a line for each check, `java: N passed, N failed, N known` at the end. TABLES_KNOWN names a file of
// checks that the other side is known to fail; a trust store is given by -Djavax.net.ssl.trustStore.

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.credential.AzureSasCredential;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.http.rest.PagedResponse;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableClientBuilder;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.ListTablesOptions;
import com.azure.data.tables.models.TableAccessPolicy;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableItem;
import com.azure.data.tables.models.TableServiceCorsRule;
import com.azure.data.tables.models.TableServiceException;
import com.azure.data.tables.models.TableServiceLogging;
import com.azure.data.tables.models.TableServiceMetrics;
import com.azure.data.tables.models.TableServiceProperties;
import com.azure.data.tables.models.TableServiceRetentionPolicy;
import com.azure.data.tables.models.TableSignedIdentifier;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionFailedException;
import com.azure.data.tables.sas.TableAccountSasPermission;
import com.azure.data.tables.sas.TableAccountSasResourceType;
import com.azure.data.tables.sas.TableAccountSasService;
import com.azure.data.tables.sas.TableAccountSasSignatureValues;
import com.azure.data.tables.sas.TableSasPermission;
import com.azure.data.tables.sas.TableSasSignatureValues;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

public final class App {
    private static final AtomicLong BUSY = new AtomicLong();
    private static String connection;
    private static boolean throttled;
    private static TableServiceClient service;

    private interface Check {
        void run() throws Exception;
    }

    private static void same(Object got, Object expected) {
        if (!Objects.equals(got, expected)) {
            throw new AssertionError("expected " + expected + ", got " + got);
        }
    }

    private static <T extends HttpResponseException> T refused(Class<T> kind, Check call, int status, String code) throws Exception {
        try {
            call.run();
        } catch (HttpResponseException error) {
            if (!kind.isInstance(error)) {
                throw new AssertionError("expected " + kind.getSimpleName() + ", got " + error);
            }
            String found = error instanceof TableServiceException one && one.getValue() != null && one.getValue().getErrorCode() != null
                ? one.getValue().getErrorCode().toString()
                : error.getResponse().getHeaderValue("x-ms-error-code");
            // A failed transaction has no answer of its own.
            int answered = error.getResponse() == null ? status : error.getResponse().getStatusCode();
            same(answered + " " + found, status + " " + code);
            return kind.cast(error);
        }
        throw new AssertionError("expected " + status + " " + code + ", and it was done");
    }

    private static void refused(Check call, int status, String code) throws Exception {
        refused(HttpResponseException.class, call, status, code);
    }

    private static String name() {
        return "java" + UUID.randomUUID().toString().replace("-", "").substring(0, 12);
    }

    private static TableClient table() {
        return service.createTable(name());
    }

    private static TableEntity entity(String partition, String row, Object... more) {
        TableEntity made = new TableEntity(partition, row);
        for (int i = 0; i < more.length; i += 2) {
            made.addProperty((String) more[i], more[i + 1]);
        }
        return made;
    }

    private static TableEntity row(String row, Object... more) {
        return entity("p", row, more);
    }

    private static List<String> rows(TableClient t, String filter) {
        List<String> found = new ArrayList<>();
        t.listEntities(new ListEntitiesOptions().setFilter(filter), null, null).forEach(e -> found.add(e.getRowKey()));
        return found;
    }

    private static TableTransactionAction action(TableTransactionActionType type, TableEntity entity) {
        return new TableTransactionAction(type, entity);
    }

    private static void fill(TableClient t, int count) {
        for (int first = 0; first < count; first += 100) {
            List<TableTransactionAction> batch = new ArrayList<>();
            for (int n = first; n < Math.min(count, first + 100); n++) {
                batch.add(action(TableTransactionActionType.CREATE, row(String.format("%05d", n), "n", n)));
            }
            t.submitTransaction(batch);
        }
    }

    private static TableClient bySas(TableClient t, String sas) {
        return new TableClientBuilder().endpoint(service.getServiceEndpoint()).credential(new AzureSasCredential(sas))
            .tableName(t.getTableName()).buildClient();
    }

    private static TableSasSignatureValues sas(String permission) {
        return new TableSasSignatureValues(OffsetDateTime.now().plusHours(1), TableSasPermission.parse(permission));
    }

    private static void together(int count, Check run) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(count);
        try {
            List<Future<?>> all = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                all.add(threads.submit(() -> {
                    run.run();
                    return null;
                }));
            }
            for (Future<?> one : all) {
                one.get();
            }
        } finally {
            threads.shutdownNow();
        }
    }

    private static Map<String, Check> checks() {
        Map<String, Check> checks = new LinkedHashMap<>();
        checks.put("tables_are_created_listed_and_deleted", App::tables);
        checks.put("bad_table_names_are_refused", () -> {
            refused(() -> service.createTable("1abc"), 400, "InvalidResourceName");
            refused(() -> service.createTable("ab"), 400, "OutOfRangeInput");
        });
        checks.put("a_missing_table_is_named", () -> {
            TableClient t = service.getTableClient("nosuchtable");
            refused(() -> t.createEntity(row("r")), 404, "TableNotFound");
            refused(() -> rows(t, null), 404, "TableNotFound");
        });
        checks.put("every_type_comes_back", App::types);
        checks.put("keys_may_be_odd", App::oddKeys);
        checks.put("an_insert_meets_what_is_there", () -> {
            TableClient t = table();
            t.createEntity(row("r"));
            refused(() -> t.createEntity(row("r")), 409, "EntityAlreadyExists");
        });
        checks.put("what_is_missing_is_not_found", () -> {
            TableClient t = table();
            refused(() -> t.getEntity("p", "r"), 404, "ResourceNotFound");
            refused(() -> t.updateEntity(row("r")), 404, "ResourceNotFound");
            // The library takes "it was not there" as success.
            t.deleteEntity("p", "r");
        });
        checks.put("updates_merge_or_replace", App::updates);
        checks.put("a_tag_guards_an_update", App::tags);
        checks.put("racing_increments_lose_nothing", App::race);
        checks.put("a_transaction_does_all", App::transaction);
        checks.put("a_transaction_fails_as_a_whole_and_tells_the_index", App::failedTransaction);
        checks.put("a_transaction_names_a_row_once", () -> {
            TableClient t = table();
            TableTransactionFailedException error = refused(TableTransactionFailedException.class, () -> t.submitTransaction(List.of(
                action(TableTransactionActionType.CREATE, row("a")), action(TableTransactionActionType.UPSERT_MERGE, row("a")))),
                400, "InvalidDuplicateRow");
            same(error.getFailedTransactionActionIndex(), 1);
        });
        checks.put("a_transaction_has_one_partition_key", () -> {
            TableClient t = table();
            refused(() -> t.submitTransaction(List.of(
                action(TableTransactionActionType.CREATE, entity("p", "r")), action(TableTransactionActionType.CREATE, entity("q", "r")))),
                400, "CommandsInBatchActOnDifferentPartitions");
            same(rows(t, null), List.of());
        });
        checks.put("pages_continue_from_their_token", App::pages);
        checks.put("a_page_has_at_most_1000_entities", () -> {
            TableClient t = table();
            fill(t, 1100);
            List<Integer> sizes = new ArrayList<>();
            for (PagedResponse<TableEntity> page : t.listEntities().iterableByPage()) {
                sizes.add(page.getValue().size());
            }
            same(Collections.max(sizes), 1000);
            same(sizes.stream().mapToInt(Integer::intValue).sum(), 1100);
        });
        checks.put("filters_select", App::filters);
        checks.put("a_wrong_filter_is_refused", () -> {
            TableClient t = table();
            t.createEntity(row("r"));
            refused(() -> rows(t, "aaa bbb ccc"), 400, "InvalidInput");
        });
        checks.put("select_and_top_narrow", () -> {
            TableClient t = table();
            fill(t, 20);
            for (TableEntity one : t.listEntities(new ListEntitiesOptions().setSelect(List.of("n")), null, null)) {
                same(one.getProperties().get("RowKey"), null);
            }
            int first = t.listEntities(new ListEntitiesOptions().setTop(7), null, null).iterableByPage().iterator().next().getValue().size();
            same(first, 7);
        });
        checks.put("properties_have_limits", App::limits);
        checks.put("a_table_sas_permits_what_it_says", App::tableSas);
        checks.put("a_table_sas_has_a_range_of_keys", () -> {
            TableClient t = table();
            for (String partition : List.of("a", "b", "c")) {
                t.createEntity(entity(partition, "r"));
            }
            TableClient inside = bySas(t, t.generateSas(sas("ra").setStartPartitionKey("b").setStartRowKey("a").setEndPartitionKey("b").setEndRowKey("z")));
            same(rows(inside, null), List.of("r"));
            inside.createEntity(entity("b", "s"));
            refused(() -> inside.createEntity(entity("c", "s")), 403, "AuthorizationFailure");
        });
        checks.put("a_sas_ends", () -> {
            TableClient t = table();
            TableSasSignatureValues late = new TableSasSignatureValues(OffsetDateTime.now().minusHours(1), TableSasPermission.parse("r"));
            refused(() -> rows(bySas(t, t.generateSas(late)), null), 403, "AuthenticationFailed");
        });
        checks.put("an_account_sas_permits_what_it_says", () -> {
            TableClient t = table();
            TableClient reader = bySas(t, service.generateAccountSas(new TableAccountSasSignatureValues(OffsetDateTime.now().plusHours(1),
                TableAccountSasPermission.parse("rl"), TableAccountSasService.parse("t"), TableAccountSasResourceType.parse("sco"))));
            same(rows(reader, null), List.of());
            refused(() -> reader.createEntity(row("s")), 403, "AuthorizationPermissionMismatch");
        });
        checks.put("a_stored_policy_rules_its_sas", App::policies);
        checks.put("properties_of_the_service_are_kept", App::properties);
        checks.put("a_wrong_key_is_refused", () -> {
            TableServiceClient wrong = new TableServiceClientBuilder().endpoint(service.getServiceEndpoint())
                .credential(new AzureNamedKeyCredential(service.getAccountName(), "d3Jvbmc=")).buildClient();
            refused(() -> wrong.listTables().forEach(t -> { }), 403, "AuthenticationFailed");
        });
        checks.put("retries_go_through_throttling", App::throttling);
        return checks;
    }

    private static void tables() throws Exception {
        String prefix = name();
        List<String> names = List.of(prefix + "a", prefix + "b", prefix + "c");
        for (String one : names) {
            same(service.createTable(one).getTableName(), one);
        }
        refused(() -> service.createTable(names.get(0)), 409, "TableAlreadyExists");
        same(service.createTableIfNotExists(names.get(0)).getTableName(), names.get(0));
        List<String> found = new ArrayList<>();
        String filter = "TableName ge '" + prefix + "' and TableName lt '" + prefix + "~'";
        for (TableItem one : service.listTables(new ListTablesOptions().setFilter(filter).setTop(2), null, null)) {
            found.add(one.getName());
        }
        same(found, names);
        names.forEach(service::deleteTable);
        same(service.listTables(new ListTablesOptions().setFilter(filter), null, null).stream().count(), 0L);
    }

    private static void types() {
        TableClient t = table();
        Map<String, Object> values = new LinkedHashMap<>();
        values.put("text", "grüße 😀 it's");
        values.put("empty", "");
        values.put("small", -42);
        values.put("big", 1L << 40);
        values.put("ratio", 3.25);
        values.put("whole", 3.0);
        values.put("yes", true);
        values.put("when", OffsetDateTime.parse("2020-02-29T01:02:03.4567Z"));
        values.put("id", UUID.fromString("a455c695-df98-5678-aaaa-81d3367e5a34"));
        values.put("bytes", new byte[] {0, 1, -1});
        t.createEntity(new TableEntity("p", "r").setProperties(values));
        TableEntity got = t.getEntity("p", "r");
        values.forEach((name, value) -> {
            Object found = got.getProperty(name);
            if (value instanceof byte[] bytes) {
                same(Arrays.toString((byte[]) found), Arrays.toString(bytes));
            } else {
                same(found, value);
            }
        });
        same(got.getETag().startsWith("W/\"datetime'"), true);
        // The library writes it as a Double, and reads it as a text.
        t.createEntity(row("endless", "d", Double.POSITIVE_INFINITY));
        same(t.getEntity("p", "endless").getProperty("d").toString(), "Infinity");
        same(got.getTimestamp().getYear() >= 2020, true);
    }

    private static void oddKeys() {
        TableClient t = table();
        for (String key : List.of("", " ", "it's", "''", "a b", "100%", "ü", "😀", "+", "a&b=c", "(x)", "%27", "~")) {
            t.createEntity(entity(key, key, "v", key));
            same(t.getEntity(key, key).getProperty("v"), key);
            t.upsertEntityWithResponse(entity(key, key, "w", 1), TableEntityUpdateMode.REPLACE, null, null);
            t.updateEntity(entity(key, key, "w", 2), TableEntityUpdateMode.MERGE);
            String quoted = key.replace("'", "''");
            same(rows(t, "PartitionKey eq '" + quoted + "' and RowKey eq '" + quoted + "'"), List.of(key));
            t.deleteEntity(key, key);
        }
        same(rows(t, null), List.of());
    }

    private static void updates() {
        TableClient t = table();
        t.createEntity(row("r", "a", 1, "b", 2));
        t.updateEntity(row("r", "b", 3), TableEntityUpdateMode.MERGE);
        TableEntity got = t.getEntity("p", "r");
        same(List.of(got.getProperty("a"), got.getProperty("b")), List.of(1, 3));
        t.updateEntity(row("r", "c", 4), TableEntityUpdateMode.REPLACE);
        got = t.getEntity("p", "r");
        same(got.getProperty("a"), null);
        same(got.getProperty("c"), 4);
        t.upsertEntity(row("r", "d", 5));
        same(t.getEntity("p", "r").getProperty("c"), 4);
        t.upsertEntityWithResponse(row("r", "d", "text"), TableEntityUpdateMode.REPLACE, null, null);
        same(t.getEntity("p", "r").getProperty("d"), "text");
        t.upsertEntity(row("new"));
        same(rows(t, null), List.of("new", "r"));
    }

    private static void tags() throws Exception {
        TableClient t = table();
        t.createEntity(row("r", "n", 1));
        TableEntity first = t.getEntity("p", "r");
        first.addProperty("n", 2);
        t.updateEntityWithResponse(first, TableEntityUpdateMode.REPLACE, true, null, null);
        same(t.getEntity("p", "r").getETag().equals(first.getETag()), false);
        refused(() -> t.updateEntityWithResponse(first, TableEntityUpdateMode.REPLACE, true, null, null), 412, "UpdateConditionNotSatisfied");
        refused(() -> t.updateEntityWithResponse(first, TableEntityUpdateMode.MERGE, true, null, null), 412, "UpdateConditionNotSatisfied");
        refused(() -> t.deleteEntityWithResponse(first, true, null, null), 412, "UpdateConditionNotSatisfied");
        t.deleteEntityWithResponse(t.getEntity("p", "r"), true, null, null);
    }

    private static void race() throws Exception {
        TableClient t = table();
        t.createEntity(row("r", "n", 0));
        together(8, () -> {
            for (int done = 0; done < 5;) {
                TableEntity got = t.getEntity("p", "r");
                got.addProperty("n", (int) got.getProperty("n") + 1);
                try {
                    t.updateEntityWithResponse(got, TableEntityUpdateMode.REPLACE, true, null, null);
                    done++;
                } catch (TableServiceException error) {
                    if (error.getResponse().getStatusCode() != 412) {
                        throw error;
                    }
                }
            }
        });
        same(t.getEntity("p", "r").getProperty("n"), 40);
    }

    private static void transaction() {
        TableClient t = table();
        for (String row : List.of("u", "m", "d")) {
            t.createEntity(row(row, "a", 1, "b", 1));
        }
        var done = t.submitTransaction(List.of(
            action(TableTransactionActionType.CREATE, row("c", "a", 2)),
            action(TableTransactionActionType.UPDATE_REPLACE, row("u", "a", 2)),
            action(TableTransactionActionType.UPDATE_MERGE, row("m", "a", 2)),
            action(TableTransactionActionType.UPSERT_REPLACE, row("x", "a", 2)),
            action(TableTransactionActionType.UPSERT_MERGE, row("y", "a", 2)),
            action(TableTransactionActionType.DELETE, row("d"))));
        same(done.getTransactionActionResponses().size(), 6);
        same(done.getTableTransactionActionResponseByRowKey("c").getStatusCode(), 204);
        same(rows(t, null), List.of("c", "m", "u", "x", "y"));
        same(t.getEntity("p", "u").getProperty("b"), null);
        same(t.getEntity("p", "m").getProperty("b"), 1);
    }

    private static void failedTransaction() throws Exception {
        TableClient t = table();
        t.createEntity(row("there"));
        var error = refused(TableTransactionFailedException.class, () -> t.submitTransaction(List.of(
            action(TableTransactionActionType.CREATE, row("b0")),
            action(TableTransactionActionType.UPSERT_MERGE, row("b1")),
            action(TableTransactionActionType.CREATE, row("there")))), 409, "EntityAlreadyExists");
        same(error.getFailedTransactionActionIndex(), 2);
        TableEntity seen = t.getEntity("p", "there");
        t.updateEntity(row("there", "n", 1));
        error = refused(TableTransactionFailedException.class, () -> t.submitTransaction(List.of(
            action(TableTransactionActionType.CREATE, row("b0")),
            new TableTransactionAction(TableTransactionActionType.UPDATE_MERGE, seen, true))), 412, "UpdateConditionNotSatisfied");
        same(error.getFailedTransactionActionIndex(), 1);
        same(rows(t, null), List.of("there"));
    }

    private static void pages() {
        TableClient t = table();
        fill(t, 25);
        ListEntitiesOptions ten = new ListEntitiesOptions().setTop(10);
        PagedResponse<TableEntity> first = t.listEntities(ten, null, null).iterableByPage().iterator().next();
        same(first.getValue().size(), 10);
        List<Object> found = new ArrayList<>();
        for (PagedResponse<TableEntity> page : service.getTableClient(t.getTableName()).listEntities(ten, null, null).iterableByPage(first.getContinuationToken())) {
            page.getValue().forEach(e -> found.add(e.getProperty("n")));
        }
        same(found.size(), 15);
        same(List.of(found.get(0), found.get(14)), List.of(10, 24));
    }

    private static void filters() {
        TableClient t = table();
        t.createEntity(row("1", "i", 5, "s", "it's", "b", true, "d", 1.5));
        t.createEntity(row("2", "i", 7, "big", 1L << 40, "when", OffsetDateTime.parse("2008-07-10T00:00:00Z")));
        t.createEntity(entity("q", "3", "x", new byte[] {1, -1}, "g", UUID.fromString("a455c695-df98-5678-aaaa-81d3367e5a34")));
        Map.of(
            "i eq 5", List.of("1"),
            "s eq 'it''s'", List.of("1"),
            "b eq true and d lt 2.0", List.of("1"),
            "big eq 1099511627776L", List.of("2"),
            "when ge datetime'2008-07-10T00:00:00Z'", List.of("2"),
            "x eq X'01ff'", List.of("3"),
            "g eq guid'a455c695-df98-5678-aaaa-81d3367e5a34'", List.of("3"),
            "PartitionKey ge 'p' and RowKey gt '1'", List.of("2", "3"),
            "not (i eq 5)", List.of("2", "3")
        ).forEach((filter, expected) -> same(filter + ": " + rows(t, filter), filter + ": " + expected));
    }

    private static void limits() throws Exception {
        TableClient t = table();
        TableEntity most = row("most");
        TableEntity more = row("more");
        for (int n = 0; n < 253; n++) {
            if (n < 252) {
                most.addProperty("p" + n, n);
            }
            more.addProperty("p" + n, n);
        }
        t.createEntity(most);
        refused(() -> t.createEntity(more), 400, "TooManyProperties");
        refused(() -> t.createEntity(row("value", "s", "x".repeat(32769))), 400, "PropertyValueTooLarge");
    }

    private static void tableSas() throws Exception {
        TableClient t = table();
        t.createEntity(row("r"));
        TableClient reader = bySas(t, t.generateSas(sas("r")));
        same(rows(reader, null), List.of("r"));
        refused(() -> reader.createEntity(row("s")), 403, "AuthorizationPermissionMismatch");
        TableClient writer = bySas(t, t.generateSas(sas("au")));
        writer.createEntity(row("s"));
        writer.submitTransaction(List.of(action(TableTransactionActionType.CREATE, row("v")), action(TableTransactionActionType.UPSERT_MERGE, row("s"))));
        refused(() -> rows(writer, null), 403, "AuthorizationPermissionMismatch");
    }

    private static void policies() throws Exception {
        TableClient t = table();
        TableAccessPolicy policy = new TableAccessPolicy().setStartsOn(OffsetDateTime.now().minusHours(1))
            .setExpiresOn(OffsetDateTime.now().plusHours(1)).setPermissions("r");
        t.setAccessPolicies(List.of(new TableSignedIdentifier("reader").setAccessPolicy(policy)));
        var got = t.getAccessPolicies().getIdentifiers();
        same(List.of(got.get(0).getId(), got.get(0).getAccessPolicy().getPermissions()), List.of("reader", "r"));
        TableClient reader = bySas(t, t.generateSas(new TableSasSignatureValues("reader")));
        same(rows(reader, null), List.of());
        t.setAccessPolicies(List.of());
        refused(() -> rows(reader, null), 403, "AuthenticationFailed");
    }

    private static void properties() {
        TableServiceRetentionPolicy days = new TableServiceRetentionPolicy().setEnabled(true).setDaysToRetain(5);
        service.setProperties(new TableServiceProperties()
            .setLogging(new TableServiceLogging().setAnalyticsVersion("1.0").setReadLogged(true).setRetentionPolicy(days))
            .setHourMetrics(new TableServiceMetrics().setVersion("1.0").setEnabled(true).setIncludeApis(true).setRetentionPolicy(days))
            .setMinuteMetrics(new TableServiceMetrics().setVersion("1.0").setEnabled(false).setRetentionPolicy(new TableServiceRetentionPolicy().setEnabled(false)))
            .setCorsRules(List.of(new TableServiceCorsRule().setAllowedOrigins("*").setAllowedMethods("GET").setAllowedHeaders("*")
                .setExposedHeaders("*").setMaxAgeInSeconds(60))));
        TableServiceProperties got = service.getProperties();
        same(got.getLogging().isReadLogged(), true);
        same(got.getHourMetrics().getTableServiceRetentionPolicy().getDaysToRetain(), 5);
        same(got.getCorsRules().get(0).getMaxAgeInSeconds(), 60);
    }

    private static void throttling() throws Exception {
        if (!throttled) {
            return;
        }
        TableClient t = table();
        AtomicLong writers = new AtomicLong();
        together(4, () -> {
            long writer = writers.incrementAndGet();
            for (int batch = 0; batch < 12; batch++) {
                List<TableTransactionAction> actions = new ArrayList<>();
                for (int n = 0; n < 100; n++) {
                    actions.add(action(TableTransactionActionType.UPSERT_REPLACE, row(writer + "-" + batch + "-" + n)));
                }
                t.submitTransaction(actions);
            }
        });
        same(rows(t, null).size(), 4_800);
        same(BUSY.get() > 0, true);
        System.out.println("      " + BUSY.get() + " answers 503");
    }

    public static void main(String[] arguments) throws Exception {
        connection = arguments[0];
        throttled = arguments.length > 1 && arguments[1].equals("throttle");
        TableServiceClientBuilder builder = new TableServiceClientBuilder().connectionString(connection);
        if (throttled) {
            builder.retryOptions(new RetryOptions(new FixedDelayOptions(20, Duration.ofMillis(500))));
            builder.addPolicy((context, next) -> next.process().doOnNext(answer -> {
                if (answer.getStatusCode() == 503) {
                    BUSY.incrementAndGet();
                }
            }));
        }
        service = builder.buildClient();
        Map<String, String> known = new LinkedHashMap<>();
        if (System.getenv("TABLES_KNOWN") != null) {
            for (String line : Files.readAllLines(Path.of(System.getenv("TABLES_KNOWN")))) {
                String[] parts = line.split(": ", 2);
                if (parts.length == 2 && !line.startsWith("#")) {
                    known.put(parts[0], parts[1]);
                }
            }
        }
        int passed = 0;
        int failed = 0;
        int expected = 0;
        for (Map.Entry<String, Check> one : checks().entrySet()) {
            if (throttled && !one.getKey().contains("throttling")) {
                continue;
            }
            try {
                one.getValue().run();
                passed++;
                System.out.println("ok    " + one.getKey());
            } catch (Throwable error) {
                if (known.containsKey(one.getKey())) {
                    expected++;
                    System.out.println("known " + one.getKey() + ": " + known.get(one.getKey()));
                } else {
                    failed++;
                    String text = String.valueOf(error).replaceAll("\\s+", " ");
                    System.out.println("FAIL  " + one.getKey() + ": " + text.substring(0, Math.min(text.length(), 400)));
                    if (System.getenv("TABLES_TRACE") != null) {
                        error.printStackTrace();
                    }
                }
            }
        }
        System.out.println("java: " + passed + " passed, " + failed + " failed, " + expected + " known");
        System.exit(failed > 0 ? 1 : 0);
    }
}
