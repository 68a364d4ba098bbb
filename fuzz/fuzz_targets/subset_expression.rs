//! Expressions that choose samples: written as they parse, and a sample meets each or its opposite.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| grainstore_fuzz::subset_expression(data));
