//! Where the names of an attribute's numbers are: lists in the user metadata. order.md: SUB-8.
//!
//! ```text
//! label       class_names = [cat, dog]         0 is cat, 1 is dog
//! fine_label  fine_label_names = [ant, bee]    0 is ant, 1 is bee
//! ```
//! This knows the names of the lists only; [`UserMetadata::member`](crate::UserMetadata::member) reads one.

use crate::{AttributeType, Schema};

/// The attribute whose names have a member of their own.
const LABEL: &str = "label";

/// The member of the user metadata with the names of labels.
pub const CLASS_NAMES: &str = "class_names";

fn names_member(attribute: &str) -> String {
    if attribute == LABEL { CLASS_NAMES.into() } else { format!("{attribute}_names") }
}

impl Schema {
    /// The member of the user metadata with the names of an attribute's numbers: `class_names` for `label`, `NAME_names`
    /// for any other attribute. `None` for an attribute `class` beside a `label`: `class_names`
    /// are the label's.
    #[must_use]
    pub fn names_member(&self, attribute: &str) -> Option<String> {
        let member = names_member(attribute);
        let is_of_label = attribute != LABEL && member == CLASS_NAMES && self.attribute(LABEL).is_some();
        (!is_of_label).then_some(member)
    }
}

impl AttributeType {
    /// Whether the values are integers, which can have names.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        use AttributeType::{Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64};
        matches!(self, Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attribute, Field, FieldType};

    fn schema(names: &[&str]) -> Schema {
        let attribute = |name: &&str| Attribute { name: (*name).to_owned(), kind: AttributeType::Int8 };
        let field = Field { name: "data".into(), kind: FieldType::Bytes };
        Schema::new(names.iter().map(attribute).collect(), vec![field]).unwrap()
    }

    /// SUB-8
    #[test]
    fn class_names_are_of_label_and_only_without_one_of_class() {
        let both = schema(&["class", "label"]);
        assert_eq!(both.names_member("label").as_deref(), Some("class_names"));
        assert_eq!(both.names_member("class"), None);
        assert_eq!(both.names_member("split").as_deref(), Some("split_names"));
        assert_eq!(schema(&["class"]).names_member("class").as_deref(), Some("class_names"));
    }
}
