//! The flags that control how samples are packed, for new datasets and for appending.

use std::num::NonZeroUsize;

use grainstore_converters::{ConvertOptions, Mixing, OnBad, OnDuplicate, Order};
use grainstore_format::MAX_OFFSET;
use grainstore_writer::Compression;

use crate::choices::named;
use crate::sizes::{parse_jobs, parse_size, shown_size};

#[derive(clap::Args)]
pub(crate) struct PackArgs {
    /// Order in which samples are stored: shuffled (drawn from --seed) makes chunked epochs mix classes better; source
    /// keeps that of SRC, which for the files of a folder is by path
    #[arg(long, value_name = "ORDER", default_value = Order::NAMES[0], value_parser = named::<Order>(&Order::NAMES))]
    order: Order,
    /// Bytes of a segment file; a sample that is larger gets its own segment
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = parse_segment_size)]
    segment_size: u64,
    /// Compression of samples up to 64 MiB; pictures, sound and video do not compress further
    #[arg(long, value_name = "METHOD", default_value_t, value_parser = named::<Compression>(&Compression::NAMES))]
    compress: Compression,
    /// Number of threads that read, and that checksum and compress (default: 16, and one for each core)
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<NonZeroUsize>,
    /// Only the first N samples of the order
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Which of several samples with the same key is packed: none (the conversion fails), the first or the last of SRC
    /// (last reads SRC once more beforehand)
    #[arg(long, value_name = "WHICH", default_value_t, value_parser = named::<OnDuplicate>(&OnDuplicate::NAMES))]
    on_duplicate: OnDuplicate,
    /// Skip samples with the content of one before them in SRC, or of one of the dataset that they are added to: the same
    /// bytes in every field, whatever key and attributes (reads SRC once more beforehand)
    #[arg(long)]
    dedupe: bool,
    /// Skip what cannot be read or understood, and files that change while they are read; they are counted and listed
    #[arg(long, visible_alias = "skip-unreadable")]
    pub(crate) skip_bad: bool,
}

impl PackArgs {
    /// The options, with `seed` for the order.
    pub(crate) fn options(&self, seed: u64) -> ConvertOptions {
        ConvertOptions {
            order: self.order.with_seed(seed),
            limit: self.limit,
            on_bad: if self.skip_bad { OnBad::Skip } else { OnBad::Stop },
            on_duplicate: self.on_duplicate,
            skip_same_content: self.dedupe,
            seed,
            segment_size: self.segment_size,
            compression: self.compress,
            jobs: self.jobs,
            ..ConvertOptions::default()
        }
    }
}

/// How the samples were mixed, if not every order was equally likely.
pub(crate) fn mixing_note(mixing: Mixing) -> Option<String> {
    match mixing {
        Mixing::Blocks => Some(
            "order: blocks of about 1 MiB of neighbours in random order, samples shuffled across about 128 of them"
                .into(),
        ),
        Mixing::Window(len) => Some(format!(
            "order: shuffled within a window of {}, since this source can only be read from start to end",
            shown_size(len)
        )),
        _ => None,
    }
}

/// The values for `--json`.
pub(crate) fn mixing_name(mixing: Mixing) -> &'static str {
    match mixing {
        Mixing::None => "source",
        Mixing::Full => "shuffled",
        Mixing::Blocks => "shuffled_blocks",
        _ => "shuffled_window",
    }
}

fn parse_segment_size(text: &str) -> Result<u64, String> {
    let size = parse_size(text)?;
    // A larger value could only fail, and late.
    if (1..=MAX_OFFSET).contains(&size) { Ok(size) } else { Err("a segment has 1 byte to 16T".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_that_could_not_be_written_are_refused_at_once() {
        assert_eq!(parse_segment_size("1G"), Ok(1 << 30));
        assert!(parse_segment_size("0").is_err());
        assert!(parse_segment_size("17T").is_err());
    }
}
