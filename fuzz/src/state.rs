//! States of epochs: what parses is written as it parses.

use grainstore_reader::EpochState;

/// Any text.
pub fn state(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(state) = text.parse::<EpochState>() else { return };
    let written = state.to_string();
    assert_eq!(written.parse::<EpochState>().unwrap(), state, "{written}");
    assert!(!written.contains('\n'), "a state is one line");
}
