//! Attributes and fields as Python sees them: their names, and their values.

use std::ops::Range;
use std::sync::Arc;

use grainstore_format::{AttributeType, AttributeValue, FieldType, Schema};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::error::Raised;
use crate::numpy::{self, Dtype};
use crate::payloads::Payloads;
use crate::view::{Bytes, Memory};

/// A name that is used as a dictionary key. It is one object, so that looking it up compares addresses.
pub(crate) struct Name {
    text: String,
    object: PyOnceLock<Py<PyString>>,
}

impl Name {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), object: PyOnceLock::new() }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn object<'py>(&self, py: Python<'py>) -> &Bound<'py, PyString> {
        self.object.get_or_init(py, || PyString::intern(py, &self.text).unbind()).bind(py)
    }
}

/// The names of a schema.
pub(crate) struct Names {
    pub(crate) attributes: Vec<(Name, AttributeType)>,
    pub(crate) fields: Vec<(Name, FieldType)>,
    /// Whether samples have an item with their key.
    pub(crate) key: Option<Name>,
    /// The places of those attributes and fields that samples and batches have; all but in a view of some columns.
    shown_attributes: Vec<usize>,
    shown_fields: Vec<usize>,
}

/// The kind of column that a name refers to, with its number.
#[derive(Clone, Copy)]
pub(crate) enum ColumnRef {
    Key,
    Attribute(usize),
    Field(usize),
}

impl Names {
    pub(crate) fn of(schema: &Schema, keys: bool) -> Self {
        let attributes: Vec<_> =
            schema.attributes().iter().map(|one| (Name::new(&one.name), one.kind.clone())).collect();
        let fields: Vec<_> = schema.fields().iter().map(|one| (Name::new(&one.name), one.kind.clone())).collect();
        let (shown_attributes, shown_fields) = ((0..attributes.len()).collect(), (0..fields.len()).collect());
        Self { attributes, fields, key: keys.then(|| Name::new("key")), shown_attributes, shown_fields }
    }

    /// The same names, of which only some are shown: those of `wanted`, in the order that they have here.
    pub(crate) fn narrowed(&self, wanted: &[String]) -> Result<Self, Raised> {
        for name in wanted {
            self.find(name)?;
        }
        let is_wanted = |name: &Name| wanted.iter().any(|wanted| wanted == name.text());
        let renewed = |name: &Name| Name::new(name.text());
        Ok(Self {
            attributes: self.attributes.iter().map(|(name, kind)| (renewed(name), kind.clone())).collect(),
            fields: self.fields.iter().map(|(name, kind)| (renewed(name), kind.clone())).collect(),
            key: self.key.as_ref().filter(|name| is_wanted(name)).map(renewed),
            shown_attributes: self
                .attributes()
                .filter(|(_, (name, _))| is_wanted(name))
                .map(|(place, _)| place)
                .collect(),
            shown_fields: self.fields().filter(|(_, (name, _))| is_wanted(name)).map(|(place, _)| place).collect(),
        })
    }

    /// The attributes that are shown, with their places in the schema.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (usize, &(Name, AttributeType))> {
        self.shown_attributes.iter().filter_map(|&place| Some((place, self.attributes.get(place)?)))
    }

    /// The fields that are shown, with their places in the schema.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (usize, &(Name, FieldType))> {
        self.shown_fields.iter().filter_map(|&place| Some((place, self.fields.get(place)?)))
    }

    pub(crate) fn has_fields(&self) -> bool {
        !self.shown_fields.is_empty()
    }

    /// Key, fields and attributes that are shown, in this order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&Name, ColumnRef)> {
        let key = self.key.iter().map(|name| (name, ColumnRef::Key));
        let fields = self.fields().map(|(place, (name, _))| (name, ColumnRef::Field(place)));
        key.chain(fields).chain(self.attributes().map(|(place, (name, _))| (name, ColumnRef::Attribute(place))))
    }

    pub(crate) fn find(&self, name: &str) -> Result<ColumnRef, Raised> {
        let found = self.all().find(|(known, _)| known.text() == name);
        found.map(|(_, member)| member).ok_or_else(|| {
            let known: Vec<&str> = self.all().map(|(name, _)| name.text()).collect();
            let name = grainstore_format::escape_bytes(name.as_bytes());
            Raised::new("NoSuchName", format!("no field or attribute \"{name}\" (there are: {})", known.join(", ")))
        })
    }

    /// Names and types, in the form that `Writer` takes.
    pub(crate) fn types<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let types = PyDict::new(py);
        for (_, (name, kind)) in self.fields() {
            types.set_item(name.object(py), kind.name())?;
        }
        for (_, (name, kind)) in self.attributes() {
            types.set_item(name.object(py), kind.name())?;
        }
        Ok(types)
    }
}

/// An attribute's value; `None` if it is missing.
pub(crate) fn attribute_value(py: Python<'_>, value: Option<AttributeValue>) -> PyResult<Bound<'_, PyAny>> {
    Ok(match value {
        None => py.None().into_bound(py),
        Some(AttributeValue::Bool(value)) => value.into_pyobject(py)?.to_owned().into_any(),
        Some(AttributeValue::Int(value)) => value.into_pyobject(py)?.into_any(),
        Some(AttributeValue::Uint(value)) => value.into_pyobject(py)?.into_any(),
        Some(AttributeValue::Float16(value)) => value.to_f64().into_pyobject(py)?.into_any(),
        Some(AttributeValue::Bfloat16(value)) => value.to_f64().into_pyobject(py)?.into_any(),
        Some(AttributeValue::Float32(value)) => value.into_pyobject(py)?.into_any(),
        Some(AttributeValue::Float64(value)) => value.into_pyobject(py)?.into_any(),
        Some(AttributeValue::Timestamp(ns)) => numpy::datetime64(py, ns)?,
        Some(AttributeValue::Category(text)) => PyString::new(py, &text).into_any(),
        Some(AttributeValue::Opaque(bytes)) => PyBytes::new(py, &bytes).into_any(),
    })
}

/// A field's bytes, in memory that can be lent to Python.
pub(crate) struct FieldBytes<'a> {
    pub(crate) owner: &'a Arc<dyn Bytes>,
    pub(crate) range: Range<usize>,
}

impl FieldBytes<'_> {
    fn bytes(&self) -> Result<&[u8], Raised> {
        self.owner.bytes().get(self.range.clone()).ok_or_else(|| Raised::bug("a field is outside its payload"))
    }

    fn memory(&self) -> Result<Memory, Raised> {
        Memory::of(Arc::clone(self.owner), self.range.clone())
    }

    /// The value as a Python object.
    pub(crate) fn value<'py>(
        &self,
        py: Python<'py>,
        (name, kind): &(Name, FieldType),
        payloads: Payloads,
    ) -> PyResult<Bound<'py, PyAny>> {
        match (kind, payloads) {
            (FieldType::Bytes | FieldType::Opaque(_), Payloads::Bytes) => {
                Ok(PyBytes::new(py, self.bytes()?).into_any())
            }
            (FieldType::Bytes | FieldType::Opaque(_), Payloads::MemoryView) => Ok(self.memory()?.view(py)?.into_any()),
            (FieldType::Bytes | FieldType::Opaque(_), Payloads::Numpy) => {
                numpy::array(py, self.memory()?, &Dtype::UINT8)
            }
            (FieldType::Str, _) => Ok(text(py, name, self.bytes()?)?.into_any()),
            (FieldType::Array { element, .. }, payloads) => {
                let dimensions = array_dimensions(name, kind, self.range.len())?;
                let dtype = Dtype::of_element(element);
                match payloads {
                    Payloads::Bytes => {
                        let own = numpy::own_array(py, self.bytes()?.to_vec(), &dtype)?;
                        own.call_method1("reshape", (dimensions,))
                    }
                    Payloads::MemoryView | Payloads::Numpy => numpy::shaped(py, self.memory()?, &dtype, &dimensions),
                }
            }
        }
    }
}

/// The dimensions of an array of `len` bytes; files from other writers may contain anything.
pub(crate) fn array_dimensions(name: &Name, kind: &FieldType, len: usize) -> Result<Vec<u64>, Raised> {
    kind.dimensions_of(len as u64).ok_or_else(|| {
        Raised::new("Damaged", format!("field \"{}\" has {len} bytes, its type is {}", name.text(), kind.name()))
    })
}

pub(crate) fn text<'py>(py: Python<'py>, name: &Name, bytes: &[u8]) -> Result<Bound<'py, PyString>, Raised> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text)),
        Err(error) => Err(Raised::new("Damaged", format!("field \"{}\" is not UTF-8: {error}", name.text()))),
    }
}
