import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtLoggingLevel;
import ai.onnxruntime.OrtSession;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * Runs the models of gsrc exports on the test data that they carry, in onnxruntime, and compares
 * the outputs.
 *
 * <pre>mvn -q compile &amp;&amp; java -cp 'target/classes:target/lib/*' Check DIST...</pre>
 *
 * An export carries more graphs than one where it was built with --test-cases. Prints a line for
 * each model; exit code 1 after a failure.
 */
public final class Check {
    /** A tensor of a test data set: values is a FloatBuffer or a LongBuffer. */
    record Tensor(String name, long[] dims, java.nio.Buffer values) {}

    public static void main(String[] args) throws Exception {
        OrtEnvironment environment = OrtEnvironment.getEnvironment(OrtLoggingLevel.ORT_LOGGING_LEVEL_FATAL);
        System.out.println("runtime onnxruntime " + environment.getVersion());
        boolean failed = false;
        for (String arg : args) {
            Path dist = Path.of(arg);
            JsonObject manifest = JsonParser.parseString(Files.readString(dist.resolve("manifest.json"))).getAsJsonObject();
            for (var entry : new TreeMap<>(manifest.getAsJsonObject("models").asMap()).entrySet()) {
                String line;
                try {
                    line = checkModel(environment, dist, entry.getValue().getAsJsonObject());
                } catch (OrtException | IOException | RuntimeException e) {
                    failed = true;
                    line = "FAIL " + String.valueOf(e.getMessage()).replaceAll("\\s+", " ");
                }
                System.out.println(dist.getFileName() + " " + entry.getKey() + " " + line);
            }
        }
        System.exit(failed ? 1 : 0);
    }

    /** Runs every test case of a model; the line to print after its name. */
    static String checkModel(OrtEnvironment environment, Path dist, JsonObject info) throws OrtException, IOException {
        double largest = 0;
        int graphs = 0, refused = 0, byFile = 0;
        JsonObject within = info.getAsJsonObject("tolerance"); // wider where the model computes in 8 bits
        double abs = within == null ? 1e-5 : within.get("abs").getAsDouble(), rel = within == null ? 1e-4 : within.get("rel").getAsDouble();
        JsonArray cases = info.getAsJsonArray("test_cases");
        if (cases == null) {
            JsonObject only = new JsonObject();
            only.addProperty("name", "sub-graph");
            only.add("data", info.get("test_data"));
            cases = new JsonArray();
            cases.add(only);
        }
        try (OrtSession session = environment.createSession(dist.resolve(info.get("file").getAsString()).toString())) {
            for (var element : cases) {
                JsonObject test = element.getAsJsonObject();
                String name = test.get("name").getAsString();
                Path data = dist.resolve(test.get("data").getAsString());
                Map<String, Tensor> inputs = tensors(data, "input", info.getAsJsonArray("inputs").size());
                Tensor edges = inputs.get("edge_index");
                String fault = edges == null ? null : fault(edges, nodes(inputs));
                Map<String, OnnxTensor> feeds = new HashMap<>();
                try {
                    for (Tensor t : inputs.values()) feeds.put(t.name(), feed(environment, t));
                    if (test.has("refused")) {
                        if (fault == null) throw new IllegalStateException("the check of edges let the faulty graph pass");
                        refused++;
                        if (!refuses(session, feeds)) throw new IllegalStateException("the file let the faulty graph pass");
                        byFile++;
                        continue;
                    }
                    if (fault != null) throw new IllegalArgumentException(fault);
                    try (OrtSession.Result result = session.run(feeds)) {
                        for (Tensor want : tensors(data, "output", info.getAsJsonArray("outputs").size()).values()) {
                            largest = Math.max(largest, compare((OnnxTensor) result.get(want.name()).orElseThrow(), want, abs, rel));
                        }
                    }
                    graphs++;
                } catch (OrtException | RuntimeException e) {
                    throw new IllegalStateException(name + ": " + e.getMessage(), e);
                } finally {
                    feeds.values().forEach(OnnxTensor::close);
                }
            }
        }
        return String.format(Locale.ROOT, "ok max_abs=%.2e graphs=%d refused=%d by_file=%d", largest, graphs, refused, byFile);
    }

    static boolean refuses(OrtSession session, Map<String, OnnxTensor> feeds) {
        try (OrtSession.Result result = session.run(feeds)) {
            return false;
        } catch (OrtException e) {
            return true;
        }
    }

    static long nodes(Map<String, Tensor> inputs) {
        return inputs.containsKey("x") ? inputs.get("x").dims()[0] : inputs.get("x_indptr").dims()[0] - 1;
    }

    /**
     * What is wrong with edges, or null. Copy this: not every runtime looks at what a Gather reads.
     */
    static String fault(Tensor edgeIndex, long nodes) {
        if (!(edgeIndex.values() instanceof LongBuffer values) || edgeIndex.dims().length != 2 || edgeIndex.dims()[0] != 2) {
            return "edge_index is not int64 [2, E]";
        }
        for (int i = 0; i < values.limit(); i++) {
            long v = values.get(i), columns = edgeIndex.dims()[1];
            if (v < 0 || v >= nodes) {
                return "edge_index[" + i / columns + ", " + i % columns + "] is " + v + ", outside the nodes 0 to " + (nodes - 1);
            }
        }
        return null;
    }

    static OnnxTensor feed(OrtEnvironment environment, Tensor t) throws OrtException {
        return t.values() instanceof FloatBuffer f
                ? OnnxTensor.createTensor(environment, f.duplicate(), t.dims())
                : OnnxTensor.createTensor(environment, ((LongBuffer) t.values()).duplicate(), t.dims());
    }

    /** The largest difference; throws where it is above abs + rel times the largest expected value. Integers are equal. */
    static double compare(OnnxTensor got, Tensor want, double abs, double rel) {
        if (!Arrays.equals(got.getInfo().getShape(), want.dims())) {
            throw new IllegalStateException(want.name() + " has the shape " + Arrays.toString(got.getInfo().getShape()) + ", want " + Arrays.toString(want.dims()));
        }
        if (want.values() instanceof LongBuffer numbers) {
            int i = got.getLongBuffer().mismatch(numbers);
            if (i >= 0) throw new IllegalStateException(want.name() + " differs at position " + i + ", where " + numbers.get(i) + " is right");
            return 0;
        }
        FloatBuffer a = got.getFloatBuffer(), b = (FloatBuffer) want.values();
        double error = 0, largest = 0;
        for (int i = 0; i < b.limit(); i++) {
            double d = Math.abs((double) a.get(i) - b.get(i));
            if (!(d <= error)) error = d; // NaN too
            largest = Math.max(largest, Math.abs(b.get(i)));
        }
        double bound = abs + rel * largest;
        if (!(error <= bound)) throw new IllegalStateException(String.format(Locale.ROOT, "%s is off by %.3g, the bound is %.3g", want.name(), error, bound));
        return error;
    }

    static Map<String, Tensor> tensors(Path folder, String kind, int count) throws IOException {
        Map<String, Tensor> out = new LinkedHashMap<>();
        for (int i = 0; i < count; i++) {
            Tensor t = readTensor(Files.readAllBytes(folder.resolve(kind + "_" + i + ".pb")));
            out.put(t.name(), t);
        }
        return out;
    }

    /**
     * Decodes an ONNX tensor file: dims (field 1), data_type (2: 1 is float32, 7 is int64), name
     * (8) and raw_data (9), which is all that gsrc writes.
     */
    static Tensor readTensor(byte[] bytes) throws IOException {
        ByteBuffer in = ByteBuffer.wrap(bytes);
        List<Long> dims = new ArrayList<>();
        String name = "";
        long kind = 0;
        ByteBuffer raw = ByteBuffer.allocate(0);
        while (in.hasRemaining()) {
            long key = varint(in);
            int field = (int) (key >> 3);
            if ((key & 7) == 0) {
                long value = varint(in);
                if (field == 1) dims.add(value);
                if (field == 2) kind = value;
                continue;
            }
            if ((key & 7) != 2) throw new IOException("field " + field + " is not one of a tensor file");
            int size = (int) varint(in);
            ByteBuffer part = in.slice(in.position(), size);
            in.position(in.position() + size);
            if (field == 1) while (part.hasRemaining()) dims.add(varint(part)); // packed
            if (field == 8) name = StandardCharsets.UTF_8.decode(part).toString();
            if (field == 9) raw = part;
        }
        // Direct buffers, which onnxruntime reads without a copy.
        ByteBuffer data = ByteBuffer.allocateDirect(raw.remaining()).order(ByteOrder.nativeOrder());
        raw.order(ByteOrder.LITTLE_ENDIAN);
        long[] shape = dims.stream().mapToLong(Long::longValue).toArray();
        if (kind == 1) return new Tensor(name, shape, data.asFloatBuffer().put(raw.asFloatBuffer()).flip());
        if (kind == 7) return new Tensor(name, shape, data.asLongBuffer().put(raw.asLongBuffer()).flip());
        throw new IOException("element type " + kind + " is not one that gsrc writes");
    }

    static long varint(ByteBuffer in) {
        long value = 0;
        for (int shift = 0; ; shift += 7) {
            byte b = in.get();
            value |= (long) (b & 127) << shift;
            if (b >= 0) return value;
        }
    }
}
