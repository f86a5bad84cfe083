package org.janusgraph;

import java.time.Duration;
import org.janusgraph.diskstorage.configuration.ModifiableConfiguration;
import org.janusgraph.diskstorage.cql.CQLConfigOptions;
import org.janusgraph.graphdb.configuration.GraphDatabaseConfiguration;
import org.testcontainers.lifecycle.Startable;

/** Stands for JanusGraph's class of this name, which starts Cassandra in a container: its tests then ask the server of {@code judged.port}. */
public class JanusGraphCassandraContainer implements Startable {
    public JanusGraphCassandraContainer() {}

    public JanusGraphCassandraContainer(boolean fixedPort) {}

    @Override
    public void start() {}

    @Override
    public void stop() {}

    public boolean isRunning() {
        return true;
    }

    /** What JanusGraph asks of the version's number: Cassandra has PER PARTITION LIMIT since 3.11. */
    public static boolean supportsPerPartitionLimit() {
        return true;
    }

    public String getContainerIpAddress() {
        return System.getProperty("judged.host");
    }

    public int getMappedCQLPort() {
        return Integer.getInteger("judged.port");
    }

    /** The settings of JanusGraph's own tests, with a keyspace for each class of tests. */
    public ModifiableConfiguration getConfiguration(String keyspace) {
        String name = keyspace.length() > 48 || !keyspace.matches("\\w+") ? "strhash" + Math.abs(keyspace.hashCode()) : keyspace;
        return GraphDatabaseConfiguration.buildGraphConfiguration()
            .set(CQLConfigOptions.KEYSPACE, name)
            .set(GraphDatabaseConfiguration.PAGE_SIZE, 500)
            .set(GraphDatabaseConfiguration.CONNECTION_TIMEOUT, Duration.ofSeconds(60))
            .set(GraphDatabaseConfiguration.STORAGE_BACKEND, "cql")
            .set(GraphDatabaseConfiguration.STORAGE_PORT, getMappedCQLPort())
            .set(GraphDatabaseConfiguration.STORAGE_HOSTS, new String[] {getContainerIpAddress()})
            .set(GraphDatabaseConfiguration.DROP_ON_CLEAR, false)
            .set(CQLConfigOptions.MAX_REQUESTS_PER_CONNECTION, 1024);
    }
}
