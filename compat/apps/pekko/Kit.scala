import com.typesafe.config.{ Config, ConfigFactory }
import org.apache.pekko.persistence.CapabilityFlag
import org.apache.pekko.persistence.journal.JournalSpec
import org.apache.pekko.persistence.snapshot.SnapshotStoreSpec
import org.scalatest.Reporter
import org.scalatest.events.{ Event, TestFailed, TestSucceeded }
import org.scalatest.{ Args, Suite }

object Settings {
  var address = ""
  def config: Config = ConfigFactory.parseString(s"""
    pekko.persistence.journal.plugin = "pekko.persistence.cassandra.journal"
    pekko.persistence.snapshot-store.plugin = "pekko.persistence.cassandra.snapshot"
    pekko.persistence.cassandra.journal { keyspace = apps_pekko, keyspace-autocreate = true, tables-autocreate = true, circuit-breaker.call-timeout = 30s }
    pekko.persistence.cassandra.snapshot { keyspace = apps_pekko_snapshot, keyspace-autocreate = true, tables-autocreate = true }
    pekko.persistence.cassandra.events-by-tag.enabled = on
    pekko.loglevel = WARNING
    pekko.actor.allow-java-serialization = on
    pekko.actor.warn-about-java-serializer-usage = off
    pekko.test.single-expect-default = 20s
    datastax-java-driver {
      basic.contact-points = ["$address"]
      basic.load-balancing-policy.local-datacenter = "datacenter1"
      basic.request.timeout = 20s
    }
    """).withFallback(ConfigFactory.load())
}

/** The kit's suite of journals. */
class Journal extends JournalSpec(Settings.config) {
  override def supportsRejectingNonSerializableObjects: CapabilityFlag = false
}

/** The kit's suite of snapshot stores. */
class Snapshots extends SnapshotStoreSpec(Settings.config)

object Kit {
  def main(arguments: Array[String]): Unit = {
    Settings.address = arguments(0)
    var failed = 0
    var passed = 0
    val reporter = new Reporter {
      def apply(event: Event): Unit = event match {
        case each: TestSucceeded =>
          passed += 1
          println(s"PASS ${each.suiteName}: ${each.testName}")
        case each: TestFailed =>
          failed += 1
          println(s"FAIL ${each.suiteName}: ${each.testName}")
          System.err.println(each.message)
        case _ =>
      }
    }
    List[() => Suite](() => new Journal, () => new Snapshots).foreach(make => make().run(None, Args(reporter)).waitUntilCompleted())
    sys.exit(if (failed == 0 && passed > 0) 0 else 1)
  }
}
