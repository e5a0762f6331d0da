import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

import org.deidentifier.arx.ARXAnonymizer;
import org.deidentifier.arx.ARXConfiguration;
import org.deidentifier.arx.ARXLattice.ARXNode;
import org.deidentifier.arx.ARXResult;
import org.deidentifier.arx.AttributeType;
import org.deidentifier.arx.AttributeType.Hierarchy;
import org.deidentifier.arx.Data;
import org.deidentifier.arx.DataHandle;
import org.deidentifier.arx.criteria.DistinctLDiversity;
import org.deidentifier.arx.criteria.EqualDistanceTCloseness;
import org.deidentifier.arx.criteria.KAnonymity;
import org.deidentifier.arx.metric.Metric;
import org.deidentifier.arx.metric.Metric.AggregateFunction;

/**
 * One job of ARX, done again for every line that comes in, so that another program can measure in turns with it.
 *
 * Arguments, each a name and a value: --data FILE, --out FILE (both CSV, separated by ';'), --qi NAME=HIERARCHY (once
 * for each quasi-identifier), --sensitive NAME, --k N, --limit SHARE, and --l N or --t X of the sensitive column.
 * For every line of its input it loads the table and the hierarchies, searches the optimum of the loss (arithmetic
 * mean), writes the result, and prints one line of JSON.
 */
public final class ArxDriver {

    private String data;
    private String out;
    private String sensitive;
    private final List<String> names = new ArrayList<>();
    private final List<String> files = new ArrayList<>();
    private int k;
    private int l;
    private double t;
    private double limit;

    private ArxDriver(String[] arguments) {
        for (int i = 0; i + 1 < arguments.length; i += 2) {
            String value = arguments[i + 1];
            switch (arguments[i]) {
                case "--data": data = value; break;
                case "--out": out = value; break;
                case "--sensitive": sensitive = value; break;
                case "--k": k = Integer.parseInt(value); break;
                case "--l": l = Integer.parseInt(value); break;
                case "--t": t = Double.parseDouble(value); break;
                case "--limit": limit = Double.parseDouble(value); break;
                case "--qi":
                    int at = value.indexOf('=');
                    names.add(value.substring(0, at));
                    files.add(value.substring(at + 1));
                    break;
                default: throw new IllegalArgumentException("Unknown argument " + arguments[i]);
            }
        }
    }

    public static void main(String[] arguments) throws IOException {
        ArxDriver driver = new ArxDriver(arguments);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        while (lines.readLine() != null) {
            System.out.println(driver.run());
            System.out.flush();
        }
    }

    private String run() throws IOException {
        long cpu = processorTime();
        long start = System.nanoTime();
        Charset charset = StandardCharsets.UTF_8;
        Data input = Data.create(new File(data), charset, ';');
        for (int i = 0; i < names.size(); i++) {
            input.getDefinition().setAttributeType(names.get(i), Hierarchy.create(new File(files.get(i)), charset, ';'));
        }
        ARXConfiguration configuration = ARXConfiguration.create(limit, Metric.createLossMetric(AggregateFunction.ARITHMETIC_MEAN));
        configuration.addPrivacyModel(new KAnonymity(k));
        if (sensitive != null) {
            boolean protectedToo = l > 0 || t > 0;
            input.getDefinition().setAttributeType(
                sensitive, protectedToo ? AttributeType.SENSITIVE_ATTRIBUTE : AttributeType.INSENSITIVE_ATTRIBUTE);
            if (l > 0) configuration.addPrivacyModel(new DistinctLDiversity(sensitive, l));
            if (t > 0) configuration.addPrivacyModel(new EqualDistanceTCloseness(sensitive, t));
        }
        long loaded = System.nanoTime();
        ARXResult result = new ARXAnonymizer().anonymize(input, configuration);
        long searched = System.nanoTime();
        if (!result.isResultAvailable()) {
            return "{\"feasible\": false}";
        }
        DataHandle output = result.getOutput();
        output.save(new File(out), ';');
        long written = System.nanoTime();
        long used = processorTime() - cpu;
        // What follows is for the reader and is not measured.
        ARXNode node = result.getGlobalOptimum();
        StringBuilder levels = new StringBuilder();
        for (String name : names) {
            levels.append(levels.length() > 0 ? ", " : "").append(node.getGeneralization(name));
        }
        int suppressed = 0;
        for (int row = 0; row < output.getNumRows(); row++) {
            suppressed += output.isOutlier(row) ? 1 : 0;
        }
        return String.format(
            Locale.ROOT,
            "{\"feasible\": true, \"load\": %.6f, \"search\": %.6f, \"write\": %.6f, \"whole\": %.6f, \"cpu\": %.6f, "
                + "\"loss\": %s, \"levels\": [%s], \"suppressed\": %d, \"nodes\": %s, \"version\": \"%s\"}",
            (loaded - start) / 1e9, (searched - loaded) / 1e9, (written - searched) / 1e9, (written - start) / 1e9,
            used / 1e9, node.getHighestScore(), levels, suppressed, result.getLattice().getVirtualSize(),
            ARXAnonymizer.VERSION);
    }

    /** Nanoseconds of the whole process: the work, its compiler and its garbage collector. */
    private static long processorTime() {
        return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }
}
