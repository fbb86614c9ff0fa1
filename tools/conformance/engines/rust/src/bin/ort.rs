//! Runs the models of gsrc exports in onnxruntime, by the crate ort.
//!
//!     ORT_DYLIB_PATH=libonnxruntime.so cargo run --release --features ort --bin ort -- DIST...
use gsrc_conformance::{main_with, Data, Engine, Error, Tensor};
use ort::{session::Session, session::SessionInputValue, value::Tensor as Value};

struct Ort(Session);

impl Engine for Ort {
    fn run(&mut self, inputs: &[Tensor], outputs: &[String]) -> Result<Vec<Tensor>, Error> {
        let mut feeds: Vec<(String, SessionInputValue)> = vec![];
        for t in inputs {
            let value: SessionInputValue = match &t.data {
                Data::F32(v) => Value::from_array((t.dims.clone(), v.clone()))?.into(),
                Data::I64(v) => Value::from_array((t.dims.clone(), v.clone()))?.into(),
            };
            feeds.push((t.name.clone(), value));
        }
        let results = self.0.run(feeds)?;
        outputs.iter().map(|name| {
            let value = &results[name.as_str()];
            let (shape, data) = match value.try_extract_tensor::<f32>() {
                Ok((shape, data)) => (shape, Data::F32(data.to_vec())),
                Err(_) => {
                    let (shape, data) = value.try_extract_tensor::<i64>()?;
                    (shape, Data::I64(data.to_vec()))
                }
            };
            Ok(Tensor { name: name.clone(), dims: shape.iter().map(|&d| d as usize).collect(), data })
        }).collect()
    }
}

fn main() -> std::process::ExitCode {
    let environment = match ort::environment::init().with_name("conformance").build() {
        Ok(e) => e,
        Err(e) => {
            eprintln!("onnxruntime (ORT_DYLIB_PATH): {e}");
            return 1.into();
        }
    };
    environment.set_log_level(ort::logging::LogLevel::Fatal);
    main_with("ort 2.0.0-rc.15", true, &|path| Ok(Box::new(Ort(Session::builder(&environment)?.commit_from_file(path)?))))
}
