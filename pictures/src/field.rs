//! Which field of a sample holds its picture.

use grainstore_format::{AttributeType, FieldType};

/// Why no field, or none in particular, holds pictures.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldError {
    /// There is no field of the name that was given.
    #[error("there is no field \"{name}\" (there are: {known})")]
    NoSuch {
        /// The name.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The field is of another type than bytes.
    #[error("field \"{name}\" is of type {kind}, expected bytes")]
    NotBytes {
        /// Its name.
        name: String,
        /// Its type.
        kind: String,
    },
    /// Several fields could be meant, or none.
    #[error("which field has the pictures is unclear (there are: {known}), name it")]
    Unclear {
        /// The names that there are.
        known: String,
    },
}

/// The number of the field with pictures: the one of the name `wanted`; without a name the only field of bytes, or else
/// the one called "image". `fields` have their names and types.
///
/// # Errors
/// If there is no such field, or it is not known which is meant.
pub fn field_of(fields: &[(&str, &FieldType)], wanted: Option<&str>) -> Result<usize, FieldError> {
    let known = || fields.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if let Some(wanted) = wanted {
        let found = fields.iter().position(|(name, _)| *name == wanted);
        let number = found.ok_or_else(|| FieldError::NoSuch { name: wanted.to_owned(), known: known() })?;
        let kind = fields[number].1;
        if !is_bytes(kind) {
            return Err(FieldError::NotBytes { name: wanted.to_owned(), kind: kind.name() });
        }
        return Ok(number);
    }
    let candidates: Vec<usize> = (0..fields.len()).filter(|&number| is_bytes(fields[number].1)).collect();
    match candidates[..] {
        [number] => Ok(number),
        _ => {
            let called_image = candidates.into_iter().find(|&number| fields[number].0 == "image");
            called_image.ok_or_else(|| FieldError::Unclear { known: known() })
        }
    }
}

fn is_bytes(kind: &FieldType) -> bool {
    match kind {
        FieldType::Bytes => true,
        // Bytes of any length, as NumPy's users store them.
        FieldType::Array { element: AttributeType::Uint8, shape } => shape.is_open(),
        _ => false,
    }
}
