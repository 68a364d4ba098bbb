//! Every file and dataset of the corpus is opened, read and verified, and each answer is the expected one.

use std::path::{Path, PathBuf};

use grainstore_format::{Alignment, to_usize};
use grainstore_reader::plan::Order;
use grainstore_reader::{EpochOptions, ReadError, Reader};
use grainstore_store::{Dataset, VerifyOptions, verify};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{allows, lines, outcome, reader_options, root, shown, store_outcome, table};

/// A line of `expected.json`, and the answers that were not as it expects.
struct Case<'a> {
    line: &'a Value,
    path: PathBuf,
    allow_external: bool,
    wrong: &'a mut Vec<String>,
}

#[test]
fn every_case_is_opened_read_and_verified_as_expected() {
    let expected = table("expected.json");
    let mut wrong = vec![];
    for line in lines(&expected, "cases") {
        let name = line["path"].as_str().unwrap();
        let copy = line.get("sparse").map(|sparse| with_sparse_files(name, sparse));
        let path =
            copy.as_ref().map_or(root().join(name), |copy| copy.path().join(Path::new(name).file_name().unwrap()));
        let allow_external = line["options"]["allow_external"] == true;
        Case { line, path, allow_external, wrong: &mut wrong }.check();
    }
    assert!(wrong.is_empty(), "{} answers are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// A copy of a dataset with files of zeros that the corpus does not hold.
fn with_sparse_files(name: &str, sparse: &Value) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join(Path::new(name).file_name().unwrap());
    std::fs::create_dir(&copy).unwrap();
    for entry in std::fs::read_dir(root().join(name)).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    for (file, len) in sparse.as_object().unwrap() {
        let file = std::fs::File::create(folder.path().join(file)).unwrap();
        file.set_len(len.as_u64().unwrap()).unwrap();
    }
    folder
}

impl Case<'_> {
    fn same(&mut self, what: &str, found: impl Into<Value>, expected: &Value) {
        let found = found.into();
        if found != *expected {
            let text = format!("{}: {what}: {found} instead of {expected}", self.line["path"]);
            self.wrong.push(text.chars().take(600).collect());
        }
    }

    fn is_allowed(&mut self, what: &str, found: &str, expected: &Value, detail: impl std::fmt::Display) {
        if !allows(expected, found) {
            self.wrong.push(format!("{}: {what}: {found} ({detail}) instead of {expected}", self.line["path"]));
        }
    }

    fn open(&self, generation: Option<usize>) -> Result<Reader, ReadError> {
        Reader::open(&self.path, reader_options(generation, self.allow_external))
    }

    fn check(mut self) {
        let line = self.line;
        if self.allow_external {
            let refused = Reader::open(&self.path, reader_options(None, false));
            self.same("without leave", outcome(&refused), &json!("refused"));
        }
        let opened = self.open(None);
        let detail = opened.as_ref().err().map(ToString::to_string).unwrap_or_default();
        self.is_allowed("open", outcome(&opened), &line["open"], detail);
        if let Ok(reader) = &opened {
            if line["open"] == "ok" {
                self.check_facts(reader);
            }
            self.check_samples(reader);
            self.check_failures(reader);
        }
        if line["open"] == "ok" {
            self.check_generations();
        }
        self.check_verify();
    }

    fn check_facts(&mut self, reader: &Reader) {
        let facts = &self.line["facts"];
        let dataset: &Dataset = reader.collection().member(0).unwrap();
        let alignment = match dataset.geometry().alignment {
            Alignment::NoEdges => 0,
            Alignment::Multiple(bytes) => bytes.get(),
        };
        let schema = dataset.schema();
        let attributes = schema.attributes().iter().map(|a| json!({ "name": a.name, "type": a.kind.name() }));
        let fields = schema.fields().iter().map(|f| json!({ "name": f.name, "type": f.kind.name() }));
        let found = json!({
            "sample_count": dataset.sample_count(),
            "segment_count": dataset.segments().len(),
            "fingerprint": dataset.fingerprint().to_string(),
            "chunk_size": dataset.geometry().chunk_size.bytes(),
            "alignment": alignment,
            "hash_seed": dataset.geometry().hash_seed,
            "keyed": dataset.is_keyed(),
            "stored_bytes": dataset.stored_bytes().ok(),
            "payload_bytes": dataset.payload_bytes().ok(),
            "attributes": attributes.collect::<Value>(),
            "fields": fields.collect::<Value>(),
            "user": dataset.user_metadata().text(),
        });
        for (name, value) in found.as_object().unwrap() {
            self.same(name, value.clone(), &facts[name]);
        }
        for (name, expected) in facts["categories"].as_object().into_iter().flatten() {
            let categories: Vec<_> = dataset.categories(name).unwrap().iter().map(str::to_owned).collect();
            self.same(name, categories, expected);
        }
    }

    fn check_generations(&mut self) {
        for (generation, expected) in self.line["facts"]["generations"].as_array().unwrap().iter().enumerate() {
            let reader = match self.open(Some(generation)) {
                Ok(reader) => reader,
                Err(error) => {
                    return self.wrong.push(format!("{}: generation {generation}: {error}", self.line["path"]));
                }
            };
            let dataset: &Dataset = reader.collection().member(0).unwrap();
            let found = json!({
                "segment_count": dataset.segments().len(),
                "sample_count": dataset.sample_count(),
                "fingerprint": dataset.fingerprint().to_string(),
            });
            self.same("generation", found, expected);
            self.check_samples(&reader);
        }
    }

    /// Each answer about each sample. Where the case is not valid, an error is right, too.
    fn check_samples(&mut self, reader: &Reader) {
        let strict = self.line["open"] == "ok" && self.line["lookups"] != "any";
        let count = to_usize(reader.collection().sample_count());
        for (ordinal, expected) in (0..).zip(self.line["samples"].as_array().unwrap().iter().take(count)) {
            let collection = reader.collection();
            let key = shown::key(&expected["key"]);
            if self.line["lookups"] != "any" {
                let found = collection.key(ordinal).map(|found| json!(found == key)).map_err(ReadError::from);
                self.check_answer("key", ordinal, found, &json!(true), strict);
            }
            let found = read(reader, ordinal, expected);
            self.check_answer("read", ordinal, found, &expected["fields"], strict);
            if expected.get("attributes").is_some() && self.line["lookups"] != "any" {
                let found = attributes(reader, ordinal);
                self.check_answer("attributes", ordinal, found, &expected["attributes"], strict);
            }
            if let Some(key) = key.filter(|_| self.line["lookups"] != "any") {
                let found = collection.find(&key).map(|found| json!(found)).map_err(ReadError::from);
                self.check_answer("find", ordinal, found, &json!(ordinal), strict);
            }
        }
        for absent in self.line["absent_keys"].as_array().into_iter().flatten() {
            let found = reader.collection().find(&shown::from_hex(absent.as_str().unwrap())).unwrap();
            self.same("find absent key", json!(found), &Value::Null);
        }
    }

    fn check_answer(
        &mut self,
        what: &str,
        ordinal: u64,
        found: Result<Value, ReadError>,
        expected: &Value,
        strict: bool,
    ) {
        if self.must_fail(what, ordinal) {
            return;
        }
        match found {
            Ok(found) => self.same(&format!("{what} of sample {ordinal}"), found, expected),
            Err(error) if strict => {
                self.wrong.push(format!("{}: {what} of sample {ordinal}: {error}", self.line["path"]))
            }
            Err(_) => {}
        }
    }

    fn must_fail(&self, what: &str, ordinal: u64) -> bool {
        let fails = self.line["fails"].as_array();
        let sample = &self.line["samples"][to_usize(ordinal)];
        fails.is_some_and(|fails| {
            fails.iter().any(|fail| fail[what] == ordinal || what == "find" && fail[what] == sample["key"])
        })
    }

    /// What a reader has to refuse.
    fn check_failures(&mut self, reader: &Reader) {
        for fail in self.line["fails"].as_array().into_iter().flatten() {
            let (action, argument) = fail.as_object().unwrap().iter().next().unwrap();
            let collection = reader.collection();
            let ordinal = argument.as_u64().unwrap_or_default();
            let failed = match action.as_str() {
                "read" => reader.get(ordinal).is_err(),
                "key" => collection.key(ordinal).is_err(),
                "attributes" => collection.attributes(ordinal).is_err(),
                "find" => collection.find(&shown::from_hex(argument.as_str().unwrap())).is_err(),
                "order" => epoch_fails(reader),
                other => panic!("no such action: {other}"),
            };
            if !failed {
                self.wrong.push(format!("{}: {fail} did not fail", self.line["path"]));
            }
        }
    }

    fn check_verify(&mut self) {
        let options =
            VerifyOptions { threads: Some(1), allow_external: self.allow_external, ..VerifyOptions::default() };
        let reported = std::sync::Mutex::new(vec![]);
        let on_damage = |damage: grainstore_store::Damage| reported.lock().unwrap().push(damage.to_string());
        let result = verify(&self.path, &options, &on_damage, &|_| {});
        let found = match &result {
            Ok(report) if report.damaged == 0 => "ok",
            Ok(_) => "damaged",
            Err(error) => store_outcome(error),
        };
        let mut detail = reported.into_inner().unwrap();
        detail.extend(result.err().map(|error| error.to_string()));
        self.is_allowed("verify", found, &self.line["verify"], detail.join("; "));
    }
}

/// The fields of a sample; of one that is too long for a test, its length and CRC-32.
fn read(reader: &Reader, ordinal: u64, expected: &Value) -> Result<Value, ReadError> {
    let schema = reader.collection().schema();
    let mut names = schema.fields().iter().map(|field| field.name.as_str());
    if let Some((name, _)) =
        expected["fields"].as_object().unwrap().iter().find(|(_, field)| field.get("crc32").is_some())
    {
        let location = reader.collection().locate(ordinal)?;
        return Ok(json!({ name: { "len": location.stored_len, "crc32": format!("{:08x}", location.crc) } }));
    }
    let sample = reader.get(ordinal)?;
    Ok(shown::fields(&sample, &mut names))
}

fn attributes(reader: &Reader, ordinal: u64) -> Result<Value, ReadError> {
    let names = reader.collection().schema().attributes().iter().map(|attribute| attribute.name.clone());
    let values = reader.collection().attributes(ordinal)?;
    Ok(Value::Object(names.zip(values.iter().map(|value| shown::attribute(value.as_ref()))).collect()))
}

fn epoch_fails(reader: &Reader) -> bool {
    let options = EpochOptions { order: Order::Chunked.into(), ..EpochOptions::default() };
    reader.epoch(&options).map_or(true, |mut epoch| epoch.any(|batch| batch.is_err()))
}
