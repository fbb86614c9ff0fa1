//! Test data of gsrc exports: the manifest, ONNX tensor files, the comparison. Each program
//! in `bin` adds an engine.

use serde_json::Value;
use std::{collections::BTreeMap, fs, path::Path};

pub type Error = Box<dyn std::error::Error>;

/// The elements of a tensor.
#[derive(Clone, Debug)]
pub enum Data {
    F32(Vec<f32>),
    I64(Vec<i64>),
}

#[derive(Clone, Debug)]
pub struct Tensor {
    pub name: String,
    pub dims: Vec<usize>,
    pub data: Data,
}

/// An engine with a model loaded.
pub trait Engine {
    /// Runs on inputs in the model's order, and returns the outputs of these names.
    fn run(&mut self, inputs: &[Tensor], outputs: &[String]) -> Result<Vec<Tensor>, Error>;
}

/// Refuses edges to nodes that there are not: `edge_index` is [2, E], row after row. Copy this:
/// not every engine looks at what a Gather reads.
pub fn check_edges(edge_index: &[i64], nodes: usize) -> Result<(), Error> {
    let columns = edge_index.len() / 2;
    for (i, &v) in edge_index.iter().enumerate() {
        if v < 0 || v as u64 >= nodes as u64 {
            let (row, column) = (i / columns, i % columns);
            return Err(format!("edge_index[{row}, {column}] is {v}, outside the {nodes} nodes").into());
        }
    }
    Ok(())
}

/// Reads an ONNX tensor file: dims (field 1), data_type (2: 1 is float32, 7 is int64), name (8)
/// and raw_data (9), which is all that gsrc writes.
pub fn read_tensor(path: &Path) -> Result<Tensor, Error> {
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let (mut at, mut kind) = (0, 0);
    let mut t = Tensor { name: String::new(), dims: vec![], data: Data::F32(vec![]) };
    let mut raw: &[u8] = &[];
    let cut = || format!("{} is cut off", path.display());
    let varint = |at: &mut usize| -> Result<u64, Error> {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let b = *bytes.get(*at).ok_or_else(cut)?;
            *at += 1;
            value |= ((b & 127) as u64) << shift;
            if b < 128 || shift > 56 {
                return Ok(value);
            }
            shift += 7;
        }
    };
    while at < bytes.len() {
        let key = varint(&mut at)?;
        match (key >> 3, key & 7) {
            (1, 0) => t.dims.push(varint(&mut at)? as usize),
            (2, 0) => kind = varint(&mut at)?,
            (_, 0) => drop(varint(&mut at)?),
            (field, 2) => {
                let size = varint(&mut at)? as usize;
                let part = bytes.get(at..at.saturating_add(size)).ok_or_else(cut)?;
                let end = at + size;
                match field {
                    1 => while at < end { t.dims.push(varint(&mut at)? as usize) },
                    8 => t.name = String::from_utf8(part.to_vec())?,
                    9 => raw = part,
                    _ => {}
                }
                at = end;
            }
            (field, _) => return Err(format!("{}: field {field} is not one of a tensor", path.display()).into()),
        }
    }
    t.data = match kind {
        1 => Data::F32(raw.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()),
        7 => Data::I64(raw.chunks_exact(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect()),
        _ => return Err(format!("{}: element type {kind} is not one that gsrc writes", path.display()).into()),
    };
    Ok(t)
}

/// The largest difference, or an error where it is above `abs` + `rel` times the largest expected
/// value. Integers are equal.
fn compare(got: &Tensor, want: &Tensor, (abs, rel): (f64, f64)) -> Result<f64, Error> {
    if got.dims != want.dims {
        return Err(format!("{} has the shape {:?}, want {:?}", want.name, got.dims, want.dims).into());
    }
    let (a, b) = match (&got.data, &want.data) {
        (Data::F32(a), Data::F32(b)) => (a, b),
        (Data::I64(a), Data::I64(b)) if a == b => return Ok(0.0),
        (Data::I64(_), Data::I64(_)) => return Err(format!("{} has other integers than it should", want.name).into()),
        _ => return Err(format!("{} has another element type than it should", want.name).into()),
    };
    let (mut error, mut largest) = (0f64, 0f64);
    for (x, y) in a.iter().zip(b) {
        let d = (*x as f64 - *y as f64).abs();
        if d.is_nan() || d > error {
            error = if d.is_nan() { f64::INFINITY } else { d };
        }
        largest = largest.max((*y as f64).abs());
    }
    let bound = abs + rel * largest;
    if error <= bound {
        return Ok(error);
    }
    Err(format!("{} is off by {error:.2e}, the bound is {bound:.2e}", want.name).into())
}

fn list<'a>(v: &'a Value, key: &str) -> &'a [Value] {
    v[key].as_array().map_or(&[], |a| a)
}

fn text(v: &Value, key: &str) -> String {
    v[key].as_str().unwrap_or_default().to_string()
}

/// What happened to one model: Err is a failure, or what the engine lacks.
enum Problem {
    Fail(String),
    Lacks(String),
}

fn tensors(dist: &Path, folder: &str, kind: &str, count: usize) -> Result<Vec<Tensor>, Problem> {
    (0..count)
        .map(|i| read_tensor(&dist.join(folder).join(format!("{kind}_{i}.pb"))).map_err(|e| Problem::Fail(e.to_string())))
        .collect()
}

fn one_line(e: &Error) -> String {
    e.to_string().split_whitespace().collect::<Vec<_>>().join(" ").chars().take(300).collect()
}

/// What the engine lacks, where `right` other graphs ran, and by how much those are off.
fn lacking(lacks: &[(String, String)], right: usize, largest: f64) -> String {
    match lacks {
        [(_, why)] if right == 0 => why.clone(), // on every graph
        _ => {
            let list: Vec<String> = lacks.iter().map(|(graphs, why)| format!("{graphs}: {why}")).collect();
            let others = if right > 0 { format!(". The other {right} graphs are right, max_abs={largest:.2e}") } else { String::new() };
            list.join("; ") + &others
        }
    }
}

fn check_model(dist: &Path, info: &Value, own: bool, open: &dyn Fn(&Path) -> Result<Box<dyn Engine>, Error>) -> Result<String, Problem> {
    let mut model = open(&dist.join(text(info, "file"))).map_err(|e| Problem::Fail(format!("loading: {}", one_line(&e))))?;
    let names: Vec<String> = list(info, "outputs").iter().map(|o| text(o, "name")).collect();
    let only = [serde_json::json!({"name": "sub-graph", "data": info["test_data"]})];
    let cases = match list(info, "test_cases") {
        [] => &only[..],
        cases => cases,
    };
    // Wider where the model computes in 8 bits.
    let within = (info["tolerance"]["abs"].as_f64().unwrap_or(1e-5), info["tolerance"]["rel"].as_f64().unwrap_or(1e-4));
    let (mut largest, mut graphs, mut refused, mut by_file) = (0f64, 0, 0, 0);
    let mut lacks: Vec<(String, String)> = vec![]; // graphs, and why the engine does not run them
    for case in cases {
        let (name, folder) = (text(case, "name"), text(case, "data"));
        let inputs = tensors(dist, &folder, "input", list(info, "inputs").len())?;
        let by_name: BTreeMap<&str, &Tensor> = inputs.iter().map(|t| (t.name.as_str(), t)).collect();
        let nodes = match (by_name.get("x"), by_name.get("x_indptr")) {
            (Some(x), _) => x.dims[0],
            (_, Some(p)) => p.dims[0] - 1,
            _ => 0,
        };
        let edges = by_name.get("edge_index").and_then(|t| if let Data::I64(v) = &t.data { Some(v) } else { None });
        let sound = edges.map_or(Ok(()), |e| check_edges(e, nodes));
        if case["refused"] == true {
            if sound.is_ok() {
                return Err(Problem::Fail(format!("{name}: the check of edges let the faulty graph pass")));
            }
            refused += 1;
            match model.run(&inputs, &names) {
                Err(_) => by_file += 1,
                Ok(_) if own => return Err(Problem::Fail(format!("{name}: the file let the faulty graph pass"))),
                Ok(_) => {}
            }
            continue;
        }
        sound.map_err(|e| Problem::Fail(format!("{name}: {e}")))?;
        let got = match model.run(&inputs, &names) {
            Ok(got) => got,
            Err(e) if own => return Err(Problem::Fail(format!("{name}: {}", one_line(&e)))),
            // Other engines than onnxruntime may lack an operator.
            Err(e) => {
                let why = one_line(&e);
                match lacks.iter_mut().find(|(_, known)| *known == why) {
                    Some((names, _)) => *names = format!("{names}, {name}"),
                    None => lacks.push((name, why)),
                }
                continue;
            }
        };
        for (a, b) in got.iter().zip(&tensors(dist, &folder, "output", names.len())?) {
            largest = largest.max(compare(a, b, within).map_err(|e| Problem::Fail(format!("{name}: {e}")))?);
        }
        graphs += 1;
    }
    if !lacks.is_empty() {
        return Err(Problem::Lacks(lacking(&lacks, graphs, largest)));
    }
    Ok(format!("ok max_abs={largest:.2e} graphs={graphs} refused={refused} by_file={by_file}"))
}

/// Checks the exports that the command line names, prints a line for each model, and returns the
/// exit code. `own` tells that the engine is onnxruntime, which may lack nothing; another is said to
/// lack what it refuses to run, and fails where it computes something else.
pub fn main_with(runtime: &str, own: bool, open: &dyn Fn(&Path) -> Result<Box<dyn Engine>, Error>) -> std::process::ExitCode {
    println!("runtime {runtime}");
    let mut failed = false;
    for dist in std::env::args().skip(1) {
        let dist = Path::new(&dist);
        let manifest: Value = match fs::read(dist.join("manifest.json")).map_err(Error::from).and_then(|b| Ok(serde_json::from_slice(&b)?)) {
            Ok(v) => v,
            Err(e) => {
                eprintln!("{}: {e}", dist.display());
                return 1.into();
            }
        };
        let name = dist.file_name().unwrap_or_default().to_string_lossy();
        for (role, info) in manifest["models"].as_object().into_iter().flatten() {
            let line = match check_model(dist, info, own, open) {
                Ok(line) => line,
                Err(Problem::Lacks(why)) => format!("lacks {why}"),
                Err(Problem::Fail(why)) => {
                    failed = true;
                    format!("FAIL {why}")
                }
            };
            println!("{name} {role} {line}");
        }
    }
    (failed as u8).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_an_engine_lacks_and_where() {
        let entry = |graphs: &str, why: &str| (graphs.to_string(), why.to_string());
        assert_eq!(lacking(&[entry("none, hub", "no TopK")], 0, 0.0), "no TopK");
        assert_eq!(lacking(&[entry("hub", "no TopK")], 2, 1e-7), "hub: no TopK. The other 2 graphs are right, max_abs=1.00e-7");
        assert_eq!(lacking(&[entry("none", "no TopK"), entry("hub", "too large")], 0, 0.0), "none: no TopK; hub: too large");
    }

    #[test]
    fn refuses_edges_to_nodes_that_there_are_not() {
        assert!(check_edges(&[0, 1, 1, 0], 2).is_ok());
        assert_eq!(check_edges(&[0, 1, 1, 2], 2).unwrap_err().to_string(), "edge_index[1, 1] is 2, outside the 2 nodes");
        assert!(check_edges(&[0, -1], 2).is_err());
    }

    #[test]
    fn compares_within_the_bound() {
        let tensor = |v: &[f32]| Tensor { name: "logits".into(), dims: vec![v.len()], data: Data::F32(v.to_vec()) };
        assert_eq!(compare(&tensor(&[1.0, 2.0]), &tensor(&[1.0, 2.0]), (1e-5, 1e-4)).unwrap(), 0.0);
        assert!(compare(&tensor(&[1.0, 2.001]), &tensor(&[1.0, 2.0]), (1e-5, 1e-4)).is_err());
        assert!(compare(&tensor(&[f32::NAN]), &tensor(&[1.0]), (1e-5, 1e-4)).is_err());
    }
}
