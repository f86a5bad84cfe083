import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DefaultConsistencyLevel;
import java.math.BigDecimal;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.data.annotation.Id;
import org.springframework.data.annotation.Version;
import org.springframework.data.cassandra.config.SchemaAction;
import org.springframework.data.cassandra.config.SessionFactoryFactoryBean;
import org.springframework.data.cassandra.core.CassandraTemplate;
import org.springframework.data.cassandra.core.InsertOptions;
import org.springframework.data.cassandra.core.UpdateOptions;
import org.springframework.data.cassandra.core.convert.CassandraConverter;
import org.springframework.data.cassandra.core.convert.MappingCassandraConverter;
import org.springframework.data.cassandra.core.cql.PrimaryKeyType;
import org.springframework.data.cassandra.core.mapping.CassandraMappingContext;
import org.springframework.data.cassandra.core.mapping.Indexed;
import org.springframework.data.cassandra.core.mapping.PrimaryKeyColumn;
import org.springframework.data.cassandra.core.mapping.SimpleUserTypeResolver;
import org.springframework.data.cassandra.core.mapping.Table;
import org.springframework.data.cassandra.core.mapping.UserDefinedType;
import org.springframework.data.cassandra.core.query.CassandraPageRequest;
import org.springframework.data.cassandra.core.query.Criteria;
import org.springframework.data.cassandra.core.query.Query;
import org.springframework.data.cassandra.core.query.Update;
import org.springframework.data.cassandra.repository.AllowFiltering;
import org.springframework.data.cassandra.repository.CassandraRepository;
import org.springframework.data.cassandra.repository.MapIdCassandraRepository;
import org.springframework.data.cassandra.repository.config.EnableCassandraRepositories;
import org.springframework.dao.OptimisticLockingFailureException;
import org.springframework.data.domain.Slice;

/** Shop HOST PORT: a small application with repositories, a template, conditions, user types, paging; Spring makes the schema. */
public class Shop {
  private static final String KEYSPACE = "apps_spring";
  private static int failed;

  @UserDefinedType("address")
  public record Address(String street, String city) {}

  @Table("customers")
  public record Customer(@Id UUID id, @Indexed String name, Address home, List<Address> others, Set<String> tags, BigDecimal credit, Instant since) {}

  @Table("visits")
  public record Visit(
      @PrimaryKeyColumn(name = "customer", type = PrimaryKeyType.PARTITIONED) String customer,
      @PrimaryKeyColumn(name = "number", type = PrimaryKeyType.CLUSTERED) int number,
      String page) {}

  @Table("stock")
  public static class Stock {
    @Id public String product;
    @Version public long version;
    public int amount;
  }

  public interface Customers extends CassandraRepository<Customer, UUID> {
    List<Customer> findByName(String name);

    @AllowFiltering
    List<Customer> findByCreditGreaterThan(BigDecimal credit);
  }

  public interface Visits extends MapIdCassandraRepository<Visit> {
    Slice<Visit> findByCustomer(String customer, org.springframework.data.domain.Pageable page);

    List<Visit> findByCustomerAndNumberBetweenOrderByNumberDesc(String customer, int from, int to);

    long countByCustomer(String customer);
  }

  public interface Stocks extends CassandraRepository<Stock, String> {}

  @Configuration
  @EnableCassandraRepositories(considerNestedRepositories = true)
  public static class Beans {
    static String host;
    static int port;

    @Bean
    CqlSession session() {
      try (CqlSession session = builder().build()) {
        session.execute("DROP KEYSPACE IF EXISTS " + KEYSPACE);
        session.execute("CREATE KEYSPACE " + KEYSPACE + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
      }
      return builder().withKeyspace(KEYSPACE).build();
    }

    private static com.datastax.oss.driver.api.core.CqlSessionBuilder builder() {
      return CqlSession.builder().addContactPoint(new InetSocketAddress(host, port)).withLocalDatacenter("datacenter1");
    }

    @Bean
    CassandraMappingContext mapping(CqlSession session) {
      CassandraMappingContext context = new CassandraMappingContext();
      context.setInitialEntitySet(Set.of(Customer.class, Visit.class, Stock.class, Address.class));
      return context;
    }

    @Bean
    CassandraConverter converter(CqlSession session, CassandraMappingContext mapping) {
      MappingCassandraConverter converter = new MappingCassandraConverter(mapping);
      converter.setUserTypeResolver(new SimpleUserTypeResolver(session));
      return converter;
    }

    @Bean
    SessionFactoryFactoryBean sessionFactory(CqlSession session, CassandraConverter converter) {
      SessionFactoryFactoryBean factory = new SessionFactoryFactoryBean();
      factory.setSession(session);
      factory.setConverter(converter);
      factory.setSchemaAction(SchemaAction.RECREATE_DROP_UNUSED);
      return factory;
    }

    @Bean
    CassandraTemplate cassandraTemplate(org.springframework.data.cassandra.SessionFactory factory, CassandraConverter converter) {
      return new CassandraTemplate(factory, converter);
    }
  }

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

  public static void main(String[] args) {
    Beans.host = args[0];
    Beans.port = Integer.parseInt(args[1]);
    try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(Beans.class)) {
      Customers customers = context.getBean(Customers.class);
      Visits visits = context.getBean(Visits.class);
      Stocks stocks = context.getBean(Stocks.class);
      CassandraTemplate template = context.getBean(CassandraTemplate.class);
      Customer first = new Customer(UUID.randomUUID(), "first", new Address("s", "c"), List.of(new Address("t", "d")), Set.of("a", "b"),
          new BigDecimal("12.50"), Instant.ofEpochMilli(1_700_000_000_123L));

      check("save_and_find", () -> customers.save(first) == first && customers.findById(first.id()).orElseThrow().equals(first));
      check("find_by_index", () -> customers.findByName("first").equals(List.of(first)));
      check("filtering", () -> customers.findByCreditGreaterThan(new BigDecimal("12")).size() == 1
          && customers.findByCreditGreaterThan(new BigDecimal("13")).isEmpty());
      check("exists_and_count", () -> customers.existsById(first.id()) && customers.count() == 1);
      check("save_all", () -> {
        visits.saveAll(java.util.stream.IntStream.range(0, 250).mapToObj(number -> new Visit("first", number, "page" + number)).toList());
        return visits.countByCustomer("first") == 250;
      });
      check("slices", () -> {
        int rows = 0, pages = 0;
        Slice<Visit> slice = visits.findByCustomer("first", CassandraPageRequest.first(40));
        while (true) {
          rows += slice.getNumberOfElements();
          pages++;
          if (!slice.hasNext()) {
            return rows == 250 && pages == 7;
          }
          slice = visits.findByCustomer("first", slice.nextPageable());
        }
      });
      check("ranges_in_reverse", () -> visits.findByCustomerAndNumberBetweenOrderByNumberDesc("first", 9, 13).stream()
          .map(Visit::number).toList().equals(List.of(12, 11, 10)));
      check("optimistic_lock", () -> {
        Stock stock = new Stock();
        stock.product = "p";
        stock.amount = 1;
        stocks.save(stock);
        Stock other = stocks.findById("p").orElseThrow();
        other.amount = 2;
        stocks.save(other);
        try {
          stock.amount = 3;
          stocks.save(stock);
          return false;
        } catch (OptimisticLockingFailureException expected) {
          return stocks.findById("p").orElseThrow().amount == 2;
        }
      });
      check("if_not_exists", () -> !template.insert(first, InsertOptions.builder().withIfNotExists().build()).wasApplied());
      check("update_if", () -> {
        Query one = Query.query(Criteria.where("product").is("p"));
        boolean no = template.update(one.queryOptions(UpdateOptions.builder().ifCondition(Criteria.where("amount").is(7)).build()),
            Update.update("amount", 8), Stock.class);
        boolean yes = template.update(one.queryOptions(UpdateOptions.builder().ifCondition(Criteria.where("amount").is(2)).build()),
            Update.update("amount", 9), Stock.class);
        return !no && yes && stocks.findById("p").orElseThrow().amount == 9;
      });
      check("ttl_and_timestamp", () -> {
        template.insert(new Visit("second", 1, "x"), InsertOptions.builder().ttl(Duration.ofSeconds(500)).timestamp(1_700_000_000_000_000L).build());
        var row = template.getCqlOperations().queryForMap("SELECT ttl(page) AS t, writetime(page) AS w FROM visits WHERE customer = 'second'");
        return (int) row.get("t") > 400 && (long) row.get("w") == 1_700_000_000_000_000L;
      });
      check("batch", () -> {
        boolean applied = template.batchOps().insert(new Visit("third", 1, "a")).insert(new Visit("third", 2, "b"))
            .delete(new Visit("second", 1, "x")).execute().wasApplied();
        return applied && visits.countByCustomer("third") == 2 && visits.countByCustomer("second") == 0;
      });
      check("collections_in_place", () -> {
        Query one = Query.query(Criteria.where("id").is(first.id()));
        template.update(one, Update.empty().addTo("tags").append("c").remove("tags", "a"), Customer.class);
        return customers.findById(first.id()).orElseThrow().tags().equals(Set.of("b", "c"));
      });
      check("stream", () -> {
        try (var stream = template.stream(Query.empty().pageRequest(CassandraPageRequest.first(10)), Visit.class)) {
          return stream.count() == 252;
        }
      });
      check("consistency", () -> template.select(Query.query(Criteria.where("customer").is("third"))
          .queryOptions(org.springframework.data.cassandra.core.cql.QueryOptions.builder()
              .consistencyLevel(DefaultConsistencyLevel.QUORUM).build()), Visit.class).size() == 2);
      check("delete", () -> {
        customers.deleteById(first.id());
        visits.deleteAll();
        return customers.count() == 0 && visits.count() == 0;
      });
      template.getCqlOperations().execute("DROP KEYSPACE " + KEYSPACE);
    }
    System.exit(Math.min(failed, 1));
  }
}
