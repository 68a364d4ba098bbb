//! What helps against an error, in terms of the C library.

use grainstore_format::{EpochSetting, Remedy};

/// A sentence that names options and functions; `None` if the message itself is sufficient.
pub(crate) fn hint(remedy: &Remedy) -> Option<String> {
    let hint = match remedy {
        Remedy::Upgrade => "upgrade grainstore",
        Remedy::AllowExternal => "allow_external = 1 in the options of grainstore_open allows it",
        Remedy::ListDamage => "the command grainstore verify lists everything that is damaged",
        Remedy::OpenAgain => "grainstore_open opens it again, as it is now",
        Remedy::RebuildIndex => "the command grainstore rebuild-index rebuilds the index from the segments",
        Remedy::AdoptAgain => "the command grainstore adopt makes the index of adopted files again",
        Remedy::UseLessMemory => "smaller window_bytes or batch_size need less",
        Remedy::UseSmallerBatch => "take a smaller batch_size, or fewer samples at once",
        Remedy::UseLargerWindow => "the default of window_bytes is 256 MiB; the order \"full\" needs none",
        Remedy::UseLargerQueue => "the default of queue_bytes is 8 MiB",
        Remedy::UseLongerTimeout => "a longer timeout_ms waits for a slow device",
        Remedy::ReadUnmapped => "io = \"auto\" reads without mapping files",
        Remedy::UseAnyEngine => "engine = \"auto\" reads with threads instead",
        Remedy::UseOneRank | Remedy::UseRankBelowWorld => "world is the number of ranks, rank counts them from 0",
        Remedy::UseDefaultLanes => "with lanes = 0 their number follows from window_bytes",
        Remedy::UseTailWithoutPadding => "the tails \"short\" and \"drop\" repeat nothing",
        Remedy::UseKeyHashFraction => "\"key_hash < 0.9\" is nine tenths of the samples",
        Remedy::DiscardState => "it is cut short, or not a state",
        Remedy::UseOtherState => "without a state the epoch starts over",
        Remedy::ResumeWithoutSubset => "it resumes with subset = NULL",
        Remedy::ResumeWithSameSubset => "it resumes with the subset that it was started with",
        Remedy::OpenGeneration(generation) => {
            let number = generation.saturating_add(1);
            return Some(format!("generation = {number} in the options of grainstore_open resumes it"));
        }
        Remedy::ResumeWith { setting, value } => return Some(format!("{} resumes it", option(*setting, value))),
        // The others are of packing and exporting, or say nothing that the message does not.
        _ => return None,
    };
    Some(hint.to_owned())
}

fn option(setting: EpochSetting, value: &str) -> String {
    match setting {
        EpochSetting::Order => format!("order = \"{value}\""),
        EpochSetting::Seed => format!("seed = {value}"),
        EpochSetting::Epoch => format!("epoch = {value}"),
        EpochSetting::Lanes => format!("lanes = {value}"),
        EpochSetting::Group => format!("group = {value}"),
    }
}
