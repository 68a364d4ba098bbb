//! Encoded pictures as pixels of one size.
//!
//! A [`Recipe`] says what becomes of a picture: which part of it is taken ([`Crop`]), the size that part is scaled to, and
//! in which order the bytes of the result lie ([`Layout`]). [`Decoder::decode`] follows it for one picture: JPEG, PNG or
//! WebP bytes become red, green and blue, 8 bits each. Of a JPEG only the rows and columns of the part are decoded.
//!
//! Random parts and mirrored pictures depend on the 128 bits that the caller gives, and on nothing else: the same bits and
//! the same bytes give the same pixels.
//!
//! ```text
//! bytes -> kind -> width, height -> part (crop.rs, draws.rs) -> decode that part -> scale -> mirror, layout
//!          kind.rs                                              jpeg/, png.rs,     finish.rs
//!                                                               webp.rs
//! ```
//!
//! Colours are those of Pillow's `convert("RGB")`: grey is repeated, alpha is dropped, a palette is looked up, CMYK is taken
//! as Adobe stores it, 16-bit colours lose their lower byte, and 16-bit greys above 255 are white. An orientation in EXIF
//! is not applied, an animation gives its first picture. Bytes that are not a whole picture are an error.

mod crop;
mod decoder;
mod draws;
mod error;
mod field;
mod finish;
mod jpeg;
mod kind;
mod pixels;
mod png;
mod recipe;
mod webp;

pub use crop::Crop;
pub use decoder::{Decoder, check};
pub use error::{PictureError, RecipeError};
pub use field::{FieldError, field_of};
pub use recipe::{Filter, Layout, Recipe, RecipeOptions};
