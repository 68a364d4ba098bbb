//! The columns of a label table become attributes and fields of the dataset.

use grainstore_converters::{ConvertOptions, NoEvents, Order, convert};
use grainstore_format::AttributeValue::Int;
use grainstore_sources::folder::{FolderOptions, FolderSource};
use grainstore_store::Dataset;

use crate::stored::Shelf;

#[test]
fn a_labelled_folder_becomes_a_dataset_with_its_texts() {
    let shelf = Shelf::new();
    for file in ["a.jpg", "b.jpg", "sub/c.jpg"] {
        shelf.put(&format!("src/{file}"), file);
    }
    let table = shelf.put("x.csv", "path,label,caption\na.jpg,5,one\nb.jpg,6,\nsub/c.jpg,7,three\n");
    let folder = FolderOptions { labels: Some(table), ..FolderOptions::default() };
    let source = FolderSource::open(&shelf.path("src"), &folder).unwrap();
    let options = ConvertOptions { order: Order::Source, ..ConvertOptions::default() };
    convert(&source, &shelf.path("x.grain"), &options, &NoEvents).unwrap();
    let dataset = Dataset::open(shelf.path("x.grain")).unwrap();
    let attributes = dataset.schema().attributes().iter().map(|attribute| (&*attribute.name, attribute.kind.name()));
    let fields = dataset.schema().fields().iter().map(|field| (&*field.name, field.kind.name()));
    assert_eq!(attributes.collect::<Vec<_>>(), [("label", "int64")]);
    assert_eq!(fields.collect::<Vec<_>>(), [("image", "bytes".into()), ("caption", "str".into())]);
    let ordinal = dataset.find(b"sub/c.jpg").unwrap().unwrap();
    assert_eq!(dataset.attributes(ordinal).unwrap(), [Some(Int(7))]);
}
