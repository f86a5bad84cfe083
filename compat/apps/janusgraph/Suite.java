import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;
import static org.junit.platform.engine.discovery.DiscoverySelectors.selectMethod;

import java.util.Arrays;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.support.descriptor.MethodSource;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.TagFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs classes (or CLASS#METHOD) of tests and prints PASS or FAIL for each test, and SKIP with the reason. */
public class Suite implements TestExecutionListener {
    private static final String[] LEFT_OUT = {"MEMORY_TESTS", "PERFORMANCE_TESTS", "BRITTLE_TESTS"};
    private int passed;
    private int failed;

    public static void main(String[] arguments) {
        LauncherDiscoveryRequest request = LauncherDiscoveryRequestBuilder.request()
            .selectors(Arrays.stream(arguments).map(each -> each.contains("#") ? selectMethod(each) : selectClass(each)).toList())
            .filters(TagFilter.excludeTags(LEFT_OUT))
            .build();
        Suite suite = new Suite();
        LauncherFactory.create().execute(request, suite);
        System.exit(suite.failed == 0 && suite.passed > 0 ? 0 : 1);
    }

    /** The class of the run, which is not always that of the method, the method, and what tells its parameters. */
    private static String name(TestIdentifier test) {
        String id = test.getUniqueId();
        String type = id.replaceAll(".*\\[class:([^\\]]*\\.)?([^\\]]*)\\].*", "$2");
        String method = test.getSource().filter(MethodSource.class::isInstance).map(each -> ((MethodSource) each).getMethodName()).orElse(test.getDisplayName());
        String turn = id.replaceAll("^(?:(?!\\[test-template-invocation:).)*(?:\\[test-template-invocation:(#\\d+)\\])?.*$", "$1");
        return type + ": " + method + (turn.isEmpty() ? "" : " " + turn);
    }

    @Override
    public void executionSkipped(TestIdentifier test, String reason) {
        System.out.println("SKIP " + name(test) + ": " + reason);
    }

    @Override
    public void executionFinished(TestIdentifier test, TestExecutionResult result) {
        boolean good = result.getStatus() == TestExecutionResult.Status.SUCCESSFUL;
        if (test.isTest() && good) {
            passed++;
            System.out.println("PASS " + name(test));
        } else if (result.getStatus() == TestExecutionResult.Status.ABORTED) {
            System.out.println("SKIP " + name(test) + ": " + result.getThrowable().map(Throwable::getMessage).orElse(""));
        } else if (!good) {
            failed++;
            System.out.println("FAIL " + name(test));
            result.getThrowable().ifPresent(Throwable::printStackTrace);
        }
    }
}
