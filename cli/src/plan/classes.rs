//! The class of each sample: one column of integers or categories per dataset.

use std::ops::Range;

use anyhow::bail;
use grainstore_format::{AttributeType, AttributeValue, escape_bytes};
use grainstore_store::{Collection, Column};

/// The column, dataset by dataset.
pub(super) struct Classes<'a> {
    members: Vec<MemberClasses<'a>>,
}

struct MemberClasses<'a> {
    ordinals: Range<u64>,
    column: Column<'a>,
    /// For categories: the class of each code, which is the same for one text in all datasets.
    of_code: Vec<u32>,
}

impl<'a> Classes<'a> {
    /// Reads the classes from the attribute; `None` if there is no such attribute.
    ///
    /// # Errors
    /// If its values are not integers or categories, or a column is damaged.
    pub(super) fn of(collection: &'a Collection, attribute: &str) -> anyhow::Result<Option<Self>> {
        let Some(found) = collection.schema().attributes().iter().find(|found| found.name == attribute) else {
            return Ok(None);
        };
        let mut codes = match &found.kind {
            AttributeType::Category => collection.merged_categories(attribute)?.codes.into_owned(),
            kind if is_whole(kind) => Vec::new(),
            kind => {
                let name = escape_bytes(attribute.as_bytes());
                let kind = escape_bytes(kind.name().as_bytes());
                bail!("attribute \"{name}\" is a {kind}, expected whole numbers or categories: one for each class");
            }
        }
        .into_iter();
        let members = collection.members().enumerate().map(|(member, dataset)| {
            let column = dataset?.column(attribute)?;
            let of_code = codes.next().unwrap_or_default(); // no codes: not categories
            anyhow::Ok(MemberClasses { ordinals: collection.member_ordinals(member), column, of_code })
        });
        Ok(Some(Self { members: members.collect::<Result<_, _>>()? }))
    }

    /// The class of a sample; `None` if it has none.
    pub(super) fn of_sample(&self, ordinal: u64) -> Option<u64> {
        let member = self.members.partition_point(|member| member.ordinals.end <= ordinal);
        let MemberClasses { ordinals, column, of_code } = self.members.get(member)?;
        let ordinal = ordinal - ordinals.start;
        if let Some(code) = column.code(ordinal) {
            return of_code.get(usize::try_from(code).ok()?).copied().map(u64::from);
        }
        match column.get(ordinal)? {
            AttributeValue::Bool(value) => Some(value.into()),
            AttributeValue::Int(value) => Some(value.cast_unsigned()),
            AttributeValue::Uint(value) => Some(value),
            _ => None,
        }
    }
}

fn is_whole(kind: &AttributeType) -> bool {
    use AttributeType::{Bool, Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64};
    matches!(kind, Bool | Int8 | Int16 | Int32 | Int64 | Uint8 | Uint16 | Uint32 | Uint64)
}
