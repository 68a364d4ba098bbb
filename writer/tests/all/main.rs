//! The tests of the writer in one program, so that what they need is linked once. Beside it is what needs a process of
//! its own: `bounded_memory` measures its peak of memory, and `two_writers` starts programs, each of which holds for a
//! moment the locks that its process holds.

#[path = "../common/mod.rs"]
mod common;

mod appending;
mod categories;
mod crash_while_appending;
mod crash_while_removing;
mod crash_while_resuming;
mod crash_while_writing;
mod external;
mod removing;
mod resuming;
mod worked_segment;
mod write_and_read_back;
