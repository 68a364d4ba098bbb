//! What is written is read back; what is not a state, or of another epoch, is refused.

use std::num::NonZeroU32;

use grainstore_format::{Fingerprint, Remedy};

use super::{EpochState, StateError};
use crate::plan::Order;

fn state() -> EpochState {
    EpochState {
        fingerprint: Fingerprint(0xab),
        subset: Some(u64::MAX),
        weights: None,
        seed: u64::MAX,
        epoch: 3,
        order: Order::Chunked,
        lanes: Some(12),
        group: NonZeroU32::new(4),
        position: 1 << 60,
    }
}

/// STA-1
#[test]
fn what_is_written_is_read_back() {
    for order in [Order::Sequential, Order::Full, Order::Chunked] {
        let is_chunked = order == Order::Chunked;
        let lanes = is_chunked.then_some(7);
        let group = is_chunked.then_some(NonZeroU32::MAX);
        let state = EpochState { order, lanes, group, subset: None, ..state() };
        assert_eq!(state.to_string().parse(), Ok(state));
    }
    assert_eq!(state().to_string().parse(), Ok(state()));
}

#[test]
fn a_state_that_is_cut_short_or_changed_is_refused() {
    let text = state().to_string();
    for len in 0..text.len() {
        let error = text[..len].parse::<EpochState>().unwrap_err().to_string();
        assert!(error.starts_with("not a state of an epoch: "), "{error}");
    }
    for (old, new) in [
        ("\"grainstore_state\":1", "\"grainstore_state\":-1"),
        ("\"grainstore_state\":1", "\"grainstore_state\":0"),
        ("\"grainstore_state\":1,", ""),
        ("ab\"", "AB\""),
        ("chunked", "auto"),
        ("chunked", "full"),
        ("\"lanes\":12", "\"lanes\":null"),
        ("\"group\":4", "\"group\":null"),
        ("\"group\":4", "\"group\":0"),
        ("\"group\":4", "\"group\":4294967296"),
        ("\"epoch\":3", "\"epoch\":3,\"rank\":0"),
        ("\"epoch\":3", "\"epoch\":3.5"),
        (",\"epoch\":3", ""),
        ("\"epoch\":3", "\"epoch\":3,\"epoch\":3"),
    ] {
        assert!(text.contains(old));
        let changed = text.replace(old, new);
        assert!(matches!(changed.parse::<EpochState>(), Err(StateError::Malformed { .. })), "{changed}");
    }
    let later = text.replace("\"grainstore_state\":1", "\"grainstore_state\":2,\"more\":0");
    let error = later.parse::<EpochState>().unwrap_err().to_string();
    assert_eq!(error, "written by a newer grainstore: state version 2 is unknown to this version (1)");
}

/// STA-1
#[test]
fn a_later_version_is_newer_whatever_its_number_and_its_other_members_are() {
    for later in ["2", "18446744073709551615", "18446744073709551616", &"9".repeat(5000)] {
        let text =
            format!(r#"{{"seed":1,"seed":1e999,"a\ud800":0,"grainstore_state":{later},"group":null,"group":2}}"#);
        let error = text.parse::<EpochState>().unwrap_err();
        assert!(matches!(error, StateError::TooNew { .. }), "{later}: {error}");
    }
    for other in ["-2", "2.0", "2e0", "\"2\"", "[2]", "null"] {
        let error = format!(r#"{{"grainstore_state":{other}}}"#).parse::<EpochState>().unwrap_err();
        assert!(matches!(error, StateError::Malformed { .. }), "{other}: {error}");
    }
    let twice = state().to_string().replace("\"group\":4", "\"group\":4,\"group\":4");
    assert!(matches!(twice.parse::<EpochState>(), Err(StateError::Malformed { .. })));
}

/// STA-2
#[test]
fn a_state_of_another_epoch_is_refused_with_the_difference() {
    let own = state();
    let other = state().at(0);
    assert_eq!(own.check(&other), Ok(()));
    let refused = |other: EpochState| own.check(&other).unwrap_err().to_string();
    let dataset = refused(EpochState { fingerprint: Fingerprint(1), ..state() });
    assert_eq!(dataset, "state is of dataset 00000000000000ab, not of 0000000000000001");
    let subset = refused(EpochState { subset: None, ..state() });
    assert_eq!(subset, "state is of subset ffffffffffffffff, not of all samples");
    let order = refused(EpochState { order: Order::Full, lanes: None, group: None, ..state() });
    assert_eq!(order, "state is of order chunked, not of full");
    assert_eq!(refused(EpochState { seed: 1, ..state() }), "state is of seed 18446744073709551615, not of 1");
    assert_eq!(refused(EpochState { epoch: 4, ..state() }), "state is of epoch 3, not of 4");
    assert_eq!(refused(EpochState { lanes: Some(3), ..state() }), "state is of lanes 12, not of 3");
    let group = refused(EpochState { group: Some(NonZeroU32::MIN), ..state() });
    assert_eq!(group, "state is of group 4, not of 1");
}

/// STA-1
#[test]
fn a_state_of_a_mixture_or_of_a_development_version_is_refused_with_the_reason() {
    let text = state().to_string();
    let refused = |old: &str, new: &str| {
        assert!(text.contains(old));
        text.replace(old, new).parse::<EpochState>().unwrap_err()
    };
    for mixture in ["{}", "[1e999]", "0", "false"] {
        // Whatever else a newer version writes beside it.
        let error = refused("\"mixture\":null", &format!("\"mixture\":{mixture},\"more\":1e999"));
        assert_eq!(error.to_string(), "state is of a mixture, written by a newer grainstore");
        assert_eq!(error.remedy(), Some(Remedy::Upgrade));
    }
    let old = refused("\"group\":4,\"mixture\":null,", "");
    let expected = "state has no member \"group\": a development version of grainstore wrote it, and only that \
                    version resumes it";
    assert_eq!(old.to_string(), expected);
    assert_eq!(refused("\"mixture\":null,", ""), StateError::OfDevelopment { member: "mixture" });
}

/// STA-1
#[test]
fn a_state_of_more_than_a_mebibyte_is_refused() {
    let text = state().to_string();
    let padded = |len: usize| format!("{text}{}", " ".repeat(len - text.len())).parse::<EpochState>();
    assert_eq!(padded(1 << 20), Ok(state()));
    let error = padded((1 << 20) + 1).unwrap_err();
    assert_eq!(error.to_string(), "not a state of an epoch: it is longer than 1048576 bytes");
}
