//! Which attributes and fields of a dataset are taken, and under which names.

use std::collections::BTreeSet;
use std::path::Path;

use grainstore_format::{Attribute, Field, Remedy, Schema, escape_bytes, shown_names, shown_path};
use grainstore_store::Dataset;

use super::DatasetOptions;
use crate::{Remark, SourceError};

/// What is taken of one dataset: for each attribute and field of the result, its index in the dataset.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) attributes: Vec<usize>,
    pub(super) fields: Vec<usize>,
}

/// The schema of the result, and what of each dataset becomes it. The first dataset decides the order.
///
/// # Errors
/// Where a name is unknown or there twice, nothing is left, or two datasets differ.
pub(super) fn shapes(datasets: &[Dataset], options: &DatasetOptions) -> Result<(Schema, Vec<Shape>), SourceError> {
    let Some(first) = datasets.first() else {
        return Err(SourceError::refused(Path::new(""), "no dataset was named"));
    };
    check_names(datasets, options)?;
    let schema = taken(first, options)?;
    let mut shapes = Vec::with_capacity(datasets.len());
    for dataset in datasets {
        let own = taken(dataset, options)?;
        let differences = differences(&schema, &own, &shown_path(first.path()));
        if !differences.is_empty() {
            return Err(SourceError::refused(
                dataset.path(),
                Remark::new(differences.join("; "), Remedy::ExcludeNames),
            ));
        }
        shapes.push(Shape::new(&schema, dataset, options));
    }
    Ok((schema, shapes))
}

impl Shape {
    fn new(schema: &Schema, dataset: &Dataset, options: &DatasetOptions) -> Self {
        let own = dataset.schema();
        let old = |new: &str| old_name(options, new).to_owned();
        let attributes: Vec<usize> =
            schema.attributes().iter().filter_map(|item| own.attribute(&old(&item.name))).collect();
        let fields: Vec<usize> = schema.fields().iter().filter_map(|item| own.field(&old(&item.name))).collect();
        Self { attributes, fields }
    }
}

/// The schema of a dataset without what is left out, with the new names.
fn taken(dataset: &Dataset, options: &DatasetOptions) -> Result<Schema, SourceError> {
    let own = dataset.schema();
    let stays = |name: &str| {
        let is_named = |names: &[String]| names.iter().any(|named| named == name);
        (options.only.is_empty() || is_named(&options.only)) && !is_named(&options.exclude)
    };
    let renamed = |name: &str| {
        let target = options.map.targets().iter().find(|(_, old)| old == name);
        target.map_or(name, |(new, _)| new).to_owned()
    };
    let attributes = own.attributes().iter().filter(|item| stays(&item.name));
    let fields = own.fields().iter().filter(|item| stays(&item.name));
    let attributes: Vec<Attribute> =
        attributes.map(|item| Attribute { name: renamed(&item.name), kind: item.kind.clone() }).collect();
    let fields: Vec<Field> = fields.map(|item| Field { name: renamed(&item.name), kind: item.kind.clone() }).collect();
    if fields.is_empty() {
        let has: Vec<String> = own.fields().iter().map(|field| field.name.clone()).collect();
        let why = format!("no field is left; its fields are {}", shown_names(&has));
        return Err(SourceError::refused(dataset.path(), why));
    }
    Schema::new(attributes, fields).map_err(|error| SourceError::refused(dataset.path(), error.to_string()))
}

/// The dataset's name of what the result calls `new`.
fn old_name<'a>(options: &'a DatasetOptions, new: &'a str) -> &'a str {
    options.map.targets().iter().find(|(target, _)| target == new).map_or(new, |(_, old)| old)
}

/// Refuses names that no dataset has.
fn check_names(datasets: &[Dataset], options: &DatasetOptions) -> Result<(), SourceError> {
    let known: BTreeSet<&str> = datasets
        .iter()
        .flat_map(|dataset| {
            let attributes = dataset.schema().attributes().iter().map(|item| item.name.as_str());
            attributes.chain(dataset.schema().fields().iter().map(|item| item.name.as_str()))
        })
        .collect();
    let refused = |why: String| Err(SourceError::refused(datasets[0].path(), why));
    if let Some(key) = options.map.key() {
        return refused(format!("\"{key}\" cannot become the key: the samples of a dataset keep the keys they have"));
    }
    let olds = options.map.targets().iter().map(|(_, old)| old);
    for name in options.only.iter().chain(&options.exclude).chain(olds) {
        if !known.contains(name.as_str()) {
            let known: Vec<String> = known.iter().map(|&name| name.to_owned()).collect();
            let name = escape_bytes(name.as_bytes());
            return refused(format!("no attribute or field \"{name}\" (there are: {})", shown_names(&known)));
        }
    }
    Ok(())
}

/// What distinguishes two schemas, apart from the order of their items.
fn differences(schema: &Schema, own: &Schema, first: &str) -> Vec<String> {
    let attributes = |schema: &Schema| -> Vec<(String, String)> {
        schema.attributes().iter().map(|item| (item.name.clone(), item.kind.name().to_owned())).collect()
    };
    let fields = |schema: &Schema| -> Vec<(String, String)> {
        schema.fields().iter().map(|item| (item.name.clone(), item.kind.name())).collect()
    };
    let mut found = compared("attribute", &attributes(schema), &attributes(own), first);
    found.extend(compared("field", &fields(schema), &fields(own), first));
    found
}

fn compared(what: &str, expected: &[(String, String)], own: &[(String, String)], first: &str) -> Vec<String> {
    let kind_in = |items: &[(String, String)], name: &str| {
        items.iter().find(|(found, _)| found == name).map(|(_, kind)| kind.clone())
    };
    let shown = |name: &str| escape_bytes(name.as_bytes());
    let mut found = Vec::new();
    for (name, kind) in expected {
        match kind_in(own, name) {
            None => found.push(format!("it has no {what} \"{}\" ({kind}), which {first} has", shown(name))),
            Some(other) if other != *kind => {
                found.push(format!("its {what} \"{}\" is {other}, that of {first} is {kind}", shown(name)));
            }
            Some(_) => {}
        }
    }
    for (name, kind) in own.iter().filter(|(name, _)| kind_in(expected, name).is_none()) {
        found.push(format!("it has the {what} \"{}\" ({kind}), which {first} has not", shown(name)));
    }
    found
}
