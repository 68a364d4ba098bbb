//! An index with arbitrary bytes and right checksums: nothing panics, and nothing is trusted that the files cannot
//! hold.

#![allow(clippy::unwrap_used, reason = "a test may stop here")]

use grainstore_format::SectionKind as Kind;
use proptest::prelude::*;

use crate::common::{DatasetModel, DatasetParts, use_all, verify};

/// A section, a position in it, and the byte to write there; positions and sections wrap around.
type Change = (usize, usize, u64, bool);

fn change(parts: &mut DatasetParts, (section, place, value, word): Change) {
    let own = &mut parts.segments[section % 2].index;
    let index = if section % 3 == 0 { parts.merged.as_mut().unwrap_or(own) } else { own };
    let kinds: Vec<(Kind, u16)> = index.sections.keys().copied().collect();
    let (kind, item) = kinds[section / 6 % kinds.len()];
    let bytes = index.section(kind, item);
    let patch = value.to_le_bytes();
    let patch = if word { &patch[..] } else { &patch[..1] };
    let at = if word { place % bytes.len() / 8 * 8 } else { place % bytes.len() };
    for (byte, new) in bytes.iter_mut().skip(at).zip(patch) {
        *byte = *new;
    }
}

fn values() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..300_u64, Just(u64::MAX), Just(1 << 63), Just((1 << 44) - 1), Just(u64::MAX >> 33)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// RD-1, DIR-5
    #[test]
    fn arbitrary_bytes_in_any_section_give_an_answer_or_an_error(
        changes in prop::collection::vec((0..10_000_usize, any::<usize>(), values(), any::<bool>()), 1..4),
    ) {
        let mut model = DatasetModel::rich(&[70, 5]);
        model.segments[1].1 = true;
        let mut parts = model.parts();
        changes.into_iter().for_each(|each| change(&mut parts, each));
        let built = parts.write();
        // Whether it can be used depends on what was changed; the test checks only that it does not panic.
        let used = use_all(&built.path).is_ok();
        let (_, damage) = verify(&built.path).unwrap();
        prop_assert!(used || !damage.is_empty(), "what cannot be used is reported");
    }

    /// DIR-1, DIR-4, FTR-2
    #[test]
    fn arbitrary_bytes_in_directory_and_footer_give_an_answer_or_an_error(
        at in 0..400_usize, footer_at in 8..52_usize, value in values(), which in 0..3,
    ) {
        let mut parts = DatasetModel::rich(&[20]).parts();
        let index = &mut parts.segments[0].index;
        if which != 0 {
            index.directory_patches.push((at, value.to_le_bytes().to_vec()));
        }
        if which != 1 {
            index.footer_patches.push((footer_at, value.to_le_bytes().to_vec()));
        }
        let built = parts.write();
        let used = use_all(&built.path).is_ok();
        let damaged = verify(&built.path).map_or(1, |(report, _)| report.damaged);
        prop_assert!(used || damaged > 0, "what cannot be used is reported");
    }
}
