//! What Hugging Face's `datasets` declares of columns: the names of their numbers.
//!
//! ```text
//! {"label": {"_type": "ClassLabel", "names": [..]},            a column
//!  "box":   {"kind": {"_type": "ClassLabel", "names": [..]}},  a struct: "box.kind"
//!  "tags":  {"_type": "Sequence", "feature": {"_type": "ClassLabel", ..}}}   or "List", or [{..}]
//! ```

use serde_json::{Map, Value};

/// The names of a column's numbers.
#[derive(Debug, PartialEq)]
pub(super) enum ClassNames<'a> {
    /// It has none.
    None,
    /// A list of them, not checked.
    Of(&'a Value),
    /// They are those of the numbers in its lists.
    InLists,
}

/// The names that `features` declare for a column; `name` has dots between structs and their members.
pub(super) fn class_names<'a>(features: &'a Map<String, Value>, name: &str) -> ClassNames<'a> {
    match feature(features, name) {
        Some(feature) if is_class_label(feature) => feature.get("names").map_or(ClassNames::None, ClassNames::Of),
        Some(feature) if feature.get("feature").or_else(|| feature.get(0)).is_some_and(is_class_label) => {
            ClassNames::InLists
        }
        _ => ClassNames::None,
    }
}

fn feature<'a>(features: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    features.get(name).or_else(|| {
        name.match_indices('.').find_map(|(dot, _)| {
            let members = features.get(&name[..dot])?.as_object().filter(|members| !members.contains_key("_type"))?;
            feature(members, &name[dot + 1..])
        })
    })
}

fn is_class_label(feature: &Value) -> bool {
    feature.get("_type").is_some_and(|kind| kind == "ClassLabel")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_are_found_in_structs_and_known_in_lists() {
        let label = json!({"_type": "ClassLabel", "names": ["cat", "dog"]});
        let features = json!({
            "label": label, "a.b": label, "box": {"kind": label, "in": {"it": label}}, "number": {"_type": "Value"},
            "old": [label], "tags": {"_type": "Sequence", "feature": label}, "nameless": {"_type": "ClassLabel"},
        });
        let features = features.as_object().unwrap();
        for name in ["label", "a.b", "box.kind", "box.in.it"] {
            assert_eq!(class_names(features, name), ClassNames::Of(&label["names"]), "{name}");
        }
        for name in ["old", "tags"] {
            assert_eq!(class_names(features, name), ClassNames::InLists, "{name}");
        }
        for name in ["number", "nameless", "box", "box.none", "none", "label.names", "tags.feature", ""] {
            assert_eq!(class_names(features, name), ClassNames::None, "{name}");
        }
    }
}
