//! The tests of the plan in one program, so that what they need is linked once.

mod naive;

mod mixing;
mod model;
mod pieces;
mod share;
mod uniform;
