//! The messages of `tf.train.Example` for `prost`, written by hand: no compiler of `.proto` files is needed.
//!
//! ```
//! use grainstore_sources::tfrecord::example::{Example, Feature};
//! use prost::Message;
//!
//! let label = ("label".to_owned(), Feature::int64(vec![7]));
//! let image = ("image".to_owned(), Feature::bytes(vec!["not really a picture".into()]));
//! let example = Example::of([label, image]);
//! assert_eq!(Example::decode(&example.encode_to_vec()[..])?, example);
//! # Ok::<(), prost::DecodeError>(())
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;

/// `tensorflow.Example`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Example {
    /// The features.
    #[prost(message, optional, tag = "1")]
    pub features: Option<Features>,
}

/// `tensorflow.Features`. The order of names makes the order of bytes, so the same features are the same bytes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Features {
    /// Features by name.
    #[prost(btree_map = "string, message", tag = "1")]
    pub feature: BTreeMap<String, Feature>,
}

/// `tensorflow.Feature`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Feature {
    /// The list, if there is one.
    #[prost(oneof = "Kind", tags = "1, 2, 3")]
    pub kind: Option<Kind>,
}

/// The list of a feature.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Kind {
    /// Of bytes.
    #[prost(message, tag = "1")]
    BytesList(BytesList),
    /// Of float.
    #[prost(message, tag = "2")]
    FloatList(FloatList),
    /// Of int64.
    #[prost(message, tag = "3")]
    Int64List(Int64List),
}

/// `tensorflow.BytesList`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct BytesList {
    /// The values.
    #[prost(bytes = "bytes", repeated, tag = "1")]
    pub value: Vec<Bytes>,
}

/// `tensorflow.FloatList`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FloatList {
    /// The values.
    #[prost(float, repeated, packed = "true", tag = "1")]
    pub value: Vec<f32>,
}

/// `tensorflow.Int64List`.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Int64List {
    /// The values.
    #[prost(int64, repeated, packed = "true", tag = "1")]
    pub value: Vec<i64>,
}

impl Example {
    /// An example of these features.
    pub fn of(features: impl IntoIterator<Item = (String, Feature)>) -> Self {
        Self { features: Some(Features { feature: features.into_iter().collect() }) }
    }
}

impl Feature {
    /// A list of bytes.
    pub fn bytes(value: Vec<Bytes>) -> Self {
        Self { kind: Some(Kind::BytesList(BytesList { value })) }
    }

    /// A list of float.
    pub fn float(value: Vec<f32>) -> Self {
        Self { kind: Some(Kind::FloatList(FloatList { value })) }
    }

    /// A list of int64.
    pub fn int64(value: Vec<i64>) -> Self {
        Self { kind: Some(Kind::Int64List(Int64List { value })) }
    }
}
