//! The tests of the command in one program, so that what they need is linked once.

#[cfg(feature = "pictures")]
mod checking_images;
mod common;

mod adopted;
mod adopting;
mod appending;
mod bench;
mod convert;
mod damage;
mod deleting;
mod demo;
mod epochs;
mod exporting;
mod getting;
mod json_page;
mod large;
mod looking;
mod manners;
mod memory_of_small_files;
mod pages;
mod plain_libraries;
mod plan;
mod ranks;
mod rebuilding;
mod restricted;
mod resuming;
mod skipping;
mod sources;
mod terminal;
