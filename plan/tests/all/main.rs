//! The tests of the plan in one program, so that their dependencies are linked once.

mod naive;

mod groups;
mod mixing;
mod model;
mod pieces;
mod share;
mod uniform;
mod weights;
