//! The tables that a model exported with --lowering precomputed-buckets takes, from edge_index. Copy
//! this file; it needs nothing but the standard library.
//!
//!     rustc --edition 2021 -O buckets.rs && ./buckets vectors.json    checks it against the test vectors

const ROWS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const SEGMENTS: [usize; 3] = [4, 16, 64];

/// An input of the model: int64 data row after row, and its shape.
pub struct Table {
    pub name: &'static str,
    pub shape: Vec<usize>,
    pub data: Vec<i64>,
}

/// Where the rows of items are: those of the narrowest width that fits, several of the widest
/// above it.
struct Rows {
    of: Vec<usize>,    // rows of each width
    row: Vec<usize>,   // first row of each item
    start: Vec<usize>, // its first entry
    entries: usize,
}

impl Rows {
    fn new(counts: &[usize], widths: &[usize]) -> Rows {
        let last = widths.len() - 1;
        let kind = |n: usize| widths[..last].iter().position(|&w| n <= w).unwrap_or(last);
        let mut of = vec![0; widths.len()];
        for &n in counts {
            of[kind(n)] += n.div_ceil(widths[kind(n)]);
        }
        let (mut rows, mut entries) = (0, 0);
        let (mut next_row, mut next_entry) = (vec![], vec![]);
        for (n, w) in of.iter().zip(widths) {
            next_row.push(rows);
            next_entry.push(entries);
            rows += n;
            entries += n * w;
        }
        let (mut row, mut start) = (vec![], vec![]);
        for &n in counts {
            let c = kind(n);
            row.push(next_row[c]);
            start.push(next_entry[c]);
            next_row[c] += n.div_ceil(widths[c]);
            next_entry[c] += n.div_ceil(widths[c]) * widths[c];
        }
        Rows { of, row, start, entries }
    }

    /// All rows.
    fn all(&self) -> usize {
        self.of.iter().sum()
    }

    /// Rows of the widest kind.
    fn wide(&self) -> usize {
        self.of[self.of.len() - 1]
    }
}

/// The inputs table_* of the model. `sources` and `targets` are the rows of edge_index.
pub fn build_tables(nodes: usize, sources: &[i64], targets: &[i64]) -> Result<Vec<Table>, String> {
    let edges = sources.len();
    let mut degree = vec![0usize; nodes];
    for (e, (&s, &t)) in sources.iter().zip(targets).enumerate() {
        if s < 0 || t < 0 || s as u64 >= nodes as u64 || t as u64 >= nodes as u64 {
            return Err(format!("edge {e} goes from {s} to {t}, outside the {nodes} nodes"));
        }
        if s != t {
            degree[t as usize] += 1;
        }
    }
    let first = Rows::new(&degree, &ROWS);
    let mut order = vec![edges as i64; first.entries];
    let mut next = first.start.clone();
    for (e, (s, &t)) in sources.iter().zip(targets).enumerate() {
        if *s != t {
            order[next[t as usize]] = e as i64;
            next[t as usize] += 1;
        }
    }
    let zeros = first.all();
    let mut restore: Vec<usize> = (0..nodes).map(|v| if degree[v] == 0 { zeros } else { first.row[v] }).collect();

    // Nodes with more than 64 edges have several rows of 64, which segments sum.
    let hubs: Vec<usize> = (0..nodes).filter(|&v| degree[v] > 64).collect();
    let pieces: Vec<usize> = hubs.iter().map(|&v| degree[v].div_ceil(64)).collect();
    let second = Rows::new(&pieces, &SEGMENTS);
    let mut segments = vec![first.wide() as i64; second.entries];
    for (k, &v) in hubs.iter().enumerate() {
        for j in 0..pieces[k] {
            segments[second.start[k] + j] = (first.row[v] + j - (first.all() - first.wide())) as i64;
        }
        restore[v] = zeros + 1 + second.row[k];
    }

    // Those with more than 64 rows have several segments of 64, which rest sums.
    let huge: Vec<usize> = (0..hubs.len()).filter(|&k| pieces[k] > 64).collect();
    let width = huge.iter().map(|&k| pieces[k].div_ceil(64)).max().unwrap_or(1);
    let mut rest = vec![second.wide() as i64; huge.len() * width];
    for (i, &k) in huge.iter().enumerate() {
        for j in 0..pieces[k].div_ceil(64) {
            rest[i * width + j] = (second.row[k] + j - (second.all() - second.wide())) as i64;
        }
        restore[hubs[k]] = zeros + 1 + second.all() + i;
    }
    let wide = |v: &[usize]| v.iter().map(|&x| x as i64).collect::<Vec<i64>>();
    let list = |name, data: Vec<i64>| Table { name, shape: vec![data.len()], data };
    Ok(vec![
        list("table_degree", wide(&degree)),
        list("table_order", order),
        list("table_order_rows", wide(&first.of)),
        list("table_segments", segments),
        list("table_segment_rows", wide(&second.of)),
        Table { name: "table_rest", shape: vec![huge.len(), width], data: rest },
        list("table_restore", wide(&restore)),
    ])
}

// The rest checks the vectors, by a reader of as much JSON as they hold.

#[allow(dead_code)]
fn main() {
    let text = std::fs::read_to_string(std::env::args().nth(1).expect("usage: buckets vectors.json")).unwrap();
    let Json::List(vectors) = Json::read(&mut text.as_str()) else { panic!("not a list") };
    for v in &vectors {
        let index = v.get("edge_index").list();
        let got = build_tables(v.get("num_nodes").number() as usize, &index[0].numbers(), &index[1].numbers()).unwrap();
        for t in got {
            let want = v.get("tables").get(t.name);
            let shape: Vec<i64> = t.shape.iter().map(|&d| d as i64).collect();
            assert!(t.data == want.get("data").numbers() && shape == want.get("shape").numbers(), "{}: {:?} of {:?}", t.name, t.data, t.shape);
        }
    }
    println!("{} vectors agree", vectors.len());
}

enum Json {
    Number(i64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    fn read(text: &mut &str) -> Json {
        *text = text.trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == ':');
        let open = text.chars().next().expect("the file is cut off");
        let mut list = vec![];
        match open {
            '[' | '{' => loop {
                *text = text[if list.is_empty() && text.starts_with(open) { 1 } else { 0 }..].trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == ':');
                if text.starts_with([']', '}']) {
                    *text = &text[1..];
                    if open == '[' {
                        return Json::List(list);
                    }
                    let mut pairs = vec![];
                    let mut items = list.into_iter();
                    while let (Some(Json::Text(key)), Some(value)) = (items.next(), items.next()) {
                        pairs.push((key, value));
                    }
                    return Json::Object(pairs);
                }
                list.push(Json::read(text));
            },
            '"' => {
                let end = text[1..].find('"').expect("a text is not closed") + 1;
                let value = text[1..end].to_string();
                *text = &text[end + 1..];
                Json::Text(value)
            }
            _ => {
                let end = text.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(text.len());
                let value = text[..end].parse().expect("not a whole number");
                *text = &text[end..];
                Json::Number(value)
            }
        }
    }

    fn get(&self, key: &str) -> &Json {
        let Json::Object(pairs) = self else { panic!("{key} of what is no object") };
        &pairs.iter().find(|p| p.0 == key).unwrap_or_else(|| panic!("no {key}")).1
    }

    fn list(&self) -> &[Json] {
        let Json::List(list) = self else { panic!("not a list") };
        list
    }

    fn number(&self) -> i64 {
        let Json::Number(n) = self else { panic!("not a number") };
        *n
    }

    fn numbers(&self) -> Vec<i64> {
        self.list().iter().map(Json::number).collect()
    }
}
