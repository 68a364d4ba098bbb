//! The tests of the store in one program, so that what they need is linked once.

mod common;

mod accessors;
mod broken_index;
mod broken_manifest;
mod collection;
mod damage;
mod entries_against_chunks;
mod external_bounds;
mod hostile_index;
mod key_scan;
mod long_samples;
mod lookups;
mod mapped_index;
mod piece_by_piece;
mod verification_goes_on;
