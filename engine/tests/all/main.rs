//! The tests that every engine passes, in one program. Beside it are tests that need a process of their own: they fork
//! it, set its limits, or leave reads in flight.

#[path = "../engines/mod.rs"]
mod engines;

mod conformance;
mod devices;
