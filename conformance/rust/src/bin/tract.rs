//! Runs the models of gsrc exports in tract, which is not onnxruntime.
//!
//!     cargo run --release --features tract --bin tract -- DIST...
use gsrc_conformance::{main_with, Data, Engine, Error, Tensor};
use std::path::PathBuf;
use tract_onnx::prelude::*;

/// tract plans for the shapes that it is given: the graph is loaded anew for each.
struct Tract(PathBuf);

impl Engine for Tract {
    fn run(&mut self, inputs: &[Tensor], outputs: &[String]) -> Result<Vec<Tensor>, Error> {
        let path = self.0.clone();
        let (inputs, outputs) = (inputs.to_vec(), outputs.to_vec());
        // Some operators panic where they lack something.
        std::panic::catch_unwind(move || -> Result<Vec<Tensor>, Error> {
            let mut model = tract_onnx::onnx().model_for_path(path)?;
            let mut feeds = tvec![];
            for (i, t) in inputs.iter().enumerate() {
                let value = match &t.data {
                    Data::F32(v) => tract_onnx::prelude::Tensor::from_shape(&t.dims, v)?,
                    Data::I64(v) => tract_onnx::prelude::Tensor::from_shape(&t.dims, v)?,
                };
                model.set_input_fact(i, InferenceFact::from(&value).without_value())?;
                feeds.push(value.into_tvalue());
            }
            let plan = model.into_typed()?.into_runnable()?;
            let results = plan.run(feeds)?;
            outputs.iter().zip(results.iter()).map(|(name, t)| {
                let data = t.view().as_slice::<f32>()?.to_vec();
                Ok(Tensor::f32(name, t.shape().to_vec(), data))
            }).collect()
        }).map_err(|e| -> Error {
            let said = e.downcast_ref::<String>().cloned().or(e.downcast_ref::<&str>().map(|s| s.to_string()));
            said.unwrap_or("panicked".into()).into()
        })?
    }
}

fn main() -> std::process::ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    main_with("tract 0.23.9", false, &|path| Ok(Box::new(Tract(path.into()))))
}
