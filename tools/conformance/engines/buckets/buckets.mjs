// The tables that a model exported with --lowering precomputed-buckets takes, from edge_index. Copy this file; it needs
// nothing, and runs in browsers too.
//
//     node buckets.mjs vectors.json    checks it against the test vectors

const ROWS = [1, 2, 4, 8, 16, 32, 64]
const SEGMENTS = [4, 16, 64]

/**
 * Inputs table_* of the model by name, each {data: BigInt64Array, dims}, as new ort.Tensor("int64", data, dims) takes them.
 * @param {number} numNodes
 * @param {ArrayLike<number>} sources
 * @param {ArrayLike<number>} targets
 */
export function buildTables(numNodes, sources, targets) {
  const E = sources.length
  const degree = new Array(numNodes).fill(0)
  for (let e = 0; e < E; e++) {
    const s = Number(sources[e]), t = Number(targets[e])
    if (!(s >= 0 && t >= 0 && s < numNodes && t < numNodes)) throw new RangeError(`edge ${e} goes from ${s} to ${t}, outside the nodes 0 to ${numNodes - 1}`)
    if (s !== t) degree[t]++
  }
  const first = rows(degree, ROWS)
  const order = new Array(first.entries).fill(E)
  const next = first.start.slice()
  for (let e = 0; e < E; e++) {
    if (Number(sources[e]) !== Number(targets[e])) order[next[Number(targets[e])]++] = e
  }
  const zeros = sum(first.rows)
  const restore = degree.map((d, v) => (d === 0 ? zeros : first.row[v]))

  // Nodes with more than 64 edges have several rows of 64, which segments sum.
  const hubs = degree.flatMap((d, v) => (d > 64 ? [v] : []))
  const pieces = hubs.map((v) => Math.ceil(degree[v] / 64))
  const second = rows(pieces, SEGMENTS)
  const segments = new Array(second.entries).fill(first.rows[ROWS.length - 1])
  const wide = sum(first.rows.slice(0, -1))
  hubs.forEach((v, k) => {
    for (let j = 0; j < pieces[k]; j++) segments[second.start[k] + j] = first.row[v] - wide + j
    restore[v] = zeros + 1 + second.row[k]
  })

  // Those with more than 64 rows have several segments of 64, which rest sums.
  const huge = pieces.flatMap((n, k) => (n > 64 ? [k] : []))
  const pieces2 = huge.map((k) => Math.ceil(pieces[k] / 64))
  const width = pieces2.reduce((a, b) => Math.max(a, b), 1)
  const rest = new Array(huge.length * width).fill(second.rows[SEGMENTS.length - 1])
  const wide2 = sum(second.rows.slice(0, -1))
  huge.forEach((k, i) => {
    for (let j = 0; j < pieces2[i]; j++) rest[i * width + j] = second.row[k] - wide2 + j
    restore[hubs[k]] = zeros + 1 + sum(second.rows) + i
  })

  const table = (list, dims = [list.length]) => ({ data: BigInt64Array.from(list, BigInt), dims })
  return {
    table_degree: table(degree), table_order: table(order), table_order_rows: table(first.rows), table_segments: table(segments),
    table_segment_rows: table(second.rows), table_rest: table(rest, [huge.length, width]), table_restore: table(restore),
  }
}

// Where the rows of items are: those of the narrowest width that fits, several of the widest above it.
function rows(counts, widths) {
  const last = widths.length - 1
  const kind = counts.map((n) => { let c = 0; while (c < last && widths[c] < n) c++; return c })
  const needs = counts.map((n, k) => Math.ceil(n / widths[kind[k]]))
  const of = widths.map(() => 0)
  needs.forEach((n, k) => { of[kind[k]] += n })
  const row = [], entry = []
  let r = 0, entries = 0
  widths.forEach((w, c) => { row.push(r); entry.push(entries); r += of[c]; entries += of[c] * w })
  const at = { rows: of, row: [], start: [], entries }
  needs.forEach((n, k) => {
    const c = kind[k]
    at.row.push(row[c]); at.start.push(entry[c])
    row[c] += n; entry[c] += n * widths[c]
  })
  return at
}

const sum = (list) => list.reduce((a, b) => a + b, 0)

if (typeof process !== "undefined" && process.argv[1]?.endsWith("buckets.mjs") && process.argv[2]) {
  const { readFileSync } = await import("node:fs")
  const vectors = JSON.parse(readFileSync(process.argv[2], "utf8"))
  for (const v of vectors) {
    const got = buildTables(v.num_nodes, ...v.edge_index)
    for (const [name, want] of Object.entries(v.tables)) {
      const { data, dims } = got[name]
      if (String(dims) !== String(want.shape) || String(data) !== String(want.data)) {
        console.error(`${v.name}: ${name} is [${data}] of ${dims}, want [${want.data}] of ${want.shape}`)
        process.exit(1)
      }
    }
  }
  console.log(`${vectors.length} vectors agree`)
}
