import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The tables that a model exported with --lowering precomputed-buckets takes, from edge_index. Copy this
 * file; it needs nothing but the JDK.
 *
 * <pre>java Buckets.java vectors.json    checks it against the test vectors</pre>
 */
public final class Buckets {
    /** An int64 input: data row after row, and its shape, as OnnxTensor.createTensor takes them. */
    public record Table(long[] data, long... shape) {}

    private static final int[] ROWS = {1, 2, 4, 8, 16, 32, 64};
    private static final int[] SEGMENTS = {4, 16, 64};

    /** Where the rows of items are: those of the narrowest width that fits, several of the widest above it. */
    private static final class Rows {
        final long[] of; // rows of each width
        final long[] row, start; // first row and first entry of each item
        final int entries;

        Rows(long[] counts, int[] widths) {
            int last = widths.length - 1;
            of = new long[widths.length];
            int[] kind = new int[counts.length];
            for (int k = 0; k < counts.length; k++) {
                while (kind[k] < last && widths[kind[k]] < counts[k]) kind[k]++;
                of[kind[k]] += ceil(counts[k], widths[kind[k]]);
            }
            long[] nextRow = new long[widths.length], nextEntry = new long[widths.length];
            for (int c = 1; c <= last; c++) {
                nextRow[c] = nextRow[c - 1] + of[c - 1];
                nextEntry[c] = nextEntry[c - 1] + of[c - 1] * widths[c - 1];
            }
            entries = Math.toIntExact(nextEntry[last] + of[last] * widths[last]);
            row = new long[counts.length];
            start = new long[counts.length];
            for (int k = 0; k < counts.length; k++) {
                int c = kind[k];
                long needs = ceil(counts[k], widths[c]);
                row[k] = nextRow[c];
                start[k] = nextEntry[c];
                nextRow[c] += needs;
                nextEntry[c] += needs * widths[c];
            }
        }

        /** All rows, without the widest. */
        long narrow() {
            return Arrays.stream(of).sum() - of[of.length - 1];
        }
    }

    /** The inputs table_* of the model by name. sources and targets are the rows of edge_index. */
    public static Map<String, Table> build(int nodes, long[] sources, long[] targets) {
        int edges = sources.length;
        long[] degree = new long[nodes];
        for (int e = 0; e < edges; e++) {
            long s = sources[e], t = targets[e];
            if (s < 0 || t < 0 || s >= nodes || t >= nodes) {
                throw new IllegalArgumentException("edge " + e + " goes from " + s + " to " + t + ", outside the nodes 0 to " + (nodes - 1));
            }
            if (s != t) degree[(int) t]++;
        }
        Rows first = new Rows(degree, ROWS);
        long[] order = filled(first.entries, edges);
        long[] next = first.start.clone();
        for (int e = 0; e < edges; e++) {
            if (sources[e] != targets[e]) order[(int) next[(int) targets[e]]++] = e;
        }
        long zeros = Arrays.stream(first.of).sum();
        long[] restore = new long[nodes];
        for (int v = 0; v < nodes; v++) restore[v] = degree[v] == 0 ? zeros : first.row[v];

        // Nodes with more than 64 edges have several rows of 64, which segments sum.
        int[] hubs = java.util.stream.IntStream.range(0, nodes).filter(v -> degree[v] > 64).toArray();
        long[] pieces = Arrays.stream(hubs).mapToLong(v -> ceil(degree[v], 64)).toArray();
        Rows second = new Rows(pieces, SEGMENTS);
        long[] segments = filled(second.entries, first.of[ROWS.length - 1]);
        for (int k = 0; k < hubs.length; k++) {
            for (int j = 0; j < pieces[k]; j++) segments[(int) second.start[k] + j] = first.row[hubs[k]] - first.narrow() + j;
            restore[hubs[k]] = zeros + 1 + second.row[k];
        }

        // Those with more than 64 rows have several segments of 64, which rest sums.
        int[] huge = java.util.stream.IntStream.range(0, hubs.length).filter(k -> pieces[k] > 64).toArray();
        int width = (int) Arrays.stream(huge).mapToLong(k -> ceil(pieces[k], 64)).max().orElse(1);
        long[] rest = filled(huge.length * width, second.of[SEGMENTS.length - 1]);
        for (int i = 0; i < huge.length; i++) {
            int k = huge[i];
            for (int j = 0; j < ceil(pieces[k], 64); j++) rest[i * width + j] = second.row[k] - second.narrow() + j;
            restore[hubs[k]] = zeros + 1 + Arrays.stream(second.of).sum() + i;
        }
        Map<String, Table> tables = new LinkedHashMap<>();
        tables.put("table_degree", new Table(degree, nodes));
        tables.put("table_order", new Table(order, order.length));
        tables.put("table_order_rows", new Table(first.of, ROWS.length));
        tables.put("table_segments", new Table(segments, segments.length));
        tables.put("table_segment_rows", new Table(second.of, SEGMENTS.length));
        tables.put("table_rest", new Table(rest, huge.length, width));
        tables.put("table_restore", new Table(restore, nodes));
        return tables;
    }

    private static long ceil(long n, int d) {
        return (n + d - 1) / d;
    }

    private static long[] filled(int n, long value) {
        long[] list = new long[n];
        Arrays.fill(list, value);
        return list;
    }

    // The rest checks the vectors, by a reader of as much JSON as they hold.
    public static void main(String[] args) throws java.io.IOException {
        Json in = new Json(java.nio.file.Files.readString(java.nio.file.Path.of(args[0])));
        var vectors = (java.util.List<?>) in.value();
        for (Object o : vectors) {
            var v = (Map<?, ?>) o;
            var index = (java.util.List<?>) v.get("edge_index");
            var got = build((int) (long) v.get("num_nodes"), longs(index.get(0)), longs(index.get(1)));
            for (var want : ((Map<?, ?>) v.get("tables")).entrySet()) {
                var table = (Map<?, ?>) want.getValue();
                Table t = got.get(want.getKey());
                if (!Arrays.equals(t.data(), longs(table.get("data"))) || !Arrays.equals(t.shape(), longs(table.get("shape")))) {
                    System.err.println(v.get("name") + ": " + want.getKey() + " is " + Arrays.toString(t.data()) + " of " + Arrays.toString(t.shape()));
                    System.exit(1);
                }
            }
        }
        System.out.println(vectors.size() + " vectors agree");
    }

    private static long[] longs(Object list) {
        return ((java.util.List<?>) list).stream().mapToLong(v -> (long) v).toArray();
    }

    private static final class Json {
        private final String text;
        private int at;

        Json(String text) {
            this.text = text;
        }

        private char peek() {
            while (Character.isWhitespace(text.charAt(at)) || text.charAt(at) == ',' || text.charAt(at) == ':') at++;
            return text.charAt(at);
        }

        Object value() {
            switch (peek()) {
                case '[': {
                    var list = new java.util.ArrayList<Object>();
                    for (at++; peek() != ']'; ) list.add(value());
                    at++;
                    return list;
                }
                case '{': {
                    var map = new LinkedHashMap<String, Object>();
                    for (at++; peek() != '}'; ) map.put((String) value(), value());
                    at++;
                    return map;
                }
                case '"': {
                    int from = at + 1;
                    at = text.indexOf('"', from) + 1;
                    return text.substring(from, at - 1);
                }
                default: {
                    int from = at;
                    while (Character.isDigit(text.charAt(at)) || text.charAt(at) == '-') at++;
                    return Long.parseLong(text.substring(from, at));
                }
            }
        }
    }
}
