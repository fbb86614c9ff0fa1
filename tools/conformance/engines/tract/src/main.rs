//! Runs the models of gsrc exports in tract, which is not onnxruntime.
//!
//!     cargo run --release -- DIST...
use gsrc_conformance::{main_with, Data, Engine, Error, Tensor};
use std::path::PathBuf;
use tract_onnx::prelude::{DatumType, Framework, InferenceFact, InferenceModelExt, IntoRunnable, IntoTValue, TVec, TractResult};

type Value = tract_onnx::prelude::Tensor;

/// The file is loaded anew for each graph: see run.
struct Tract(PathBuf);

impl Engine for Tract {
    fn run(&mut self, inputs: &[Tensor], outputs: &[String]) -> Result<Vec<Tensor>, Error> {
        // Some operators panic on what they cannot do.
        match std::panic::catch_unwind(|| run(&self.0, inputs, outputs)) {
            Ok(result) => result.map_err(|e| format!("{e:#}").into()),
            Err(said) => {
                let text = said.downcast_ref::<String>().cloned().or(said.downcast_ref::<&str>().map(|s| s.to_string()));
                Err(format!("panic: {}", text.unwrap_or_default()).into())
            }
        }
    }
}

/// tract plans with shapes that it knows, and some inside of a GNN follow from the edges. So the
/// plan is made for one graph, its integers (edges, tables, pairs) being constants, and runs on
/// features and weights.
fn run(path: &PathBuf, inputs: &[Tensor], outputs: &[String]) -> TractResult<Vec<Tensor>> {
    // Value infos name sizes by symbols, which do not unify with numbers.
    let mut model = tract_onnx::onnx().with_ignore_value_info(true).model_for_path(path)?;
    let mut feeds = TVec::new();
    for (i, t) in inputs.iter().enumerate() {
        let (value, constant) = match &t.data {
            Data::F32(v) => (Value::from_shape(&t.dims, v)?, false),
            Data::I64(v) => (Value::from_shape(&t.dims, v)?, true),
        };
        let fact = InferenceFact::dt_shape(value.datum_type(), value.shape());
        let fact = if constant { value.clone().into() } else { fact };
        model.set_input_fact(i, fact)?;
        feeds.push(value.into_tvalue());
    }
    let results = model.into_optimized()?.into_runnable()?.run(feeds)?;
    outputs.iter().zip(results.iter()).map(|(name, t)| {
        let data = match t.datum_type() {
            DatumType::F32 => Data::F32(t.view().as_slice::<f32>()?.to_vec()),
            _ => Data::I64(t.cast_to::<i64>()?.view().as_slice::<i64>()?.to_vec()),
        };
        Ok(Tensor { name: name.clone(), dims: t.shape().to_vec(), data })
    }).collect()
}

fn main() -> std::process::ExitCode {
    std::panic::set_hook(Box::new(|_| {})); // told as what the engine lacks
    main_with("tract 0.23.9", false, &|path| Ok(Box::new(Tract(path.into()))))
}
