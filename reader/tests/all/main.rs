//! The tests of the reader in one program, so that their dependencies are linked once. Beside it are tests that need a
//! separate process: they fork it, set its limits, open nearly as many files as it may, or count what the process or
//! the page cache holds.

mod adopted;
mod columns;
mod comes_into_memory;
#[path = "../common/mod.rs"]
mod common;
mod corpus;
mod second;

mod collection;
mod cut_files;
mod damaged_samples;
mod decoded_batches;
mod epoch_cache;
mod epoch_damage;
mod epoch_engines;
mod epoch_followed;
mod epoch_memory;
mod epoch_ranks;
mod epoch_repeats;
mod epoch_resume;
mod epoch_subset;
mod extents_model;
mod external;
mod gather_model;
mod later_versions;
mod mapped;
mod replaced_segments;
mod round_trip;
mod sample_files;
mod second_reader;
mod second_reader_collections;
mod second_reader_external;
mod second_reader_plans;
mod second_reader_subsets;
mod shared_reader;
mod single_read;
mod streams;
mod subset_expressions;
mod subset_language;
mod subset_model;
