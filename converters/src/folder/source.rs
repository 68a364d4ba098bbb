//! A listed folder as a row of samples: many threads read its files ahead, one pushes them in order.

use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use grainstore_format::{MAX_KEY_LEN, Metadata};
use grainstore_writer::{Sample, StreamedSample};

use super::listing::{Listing, OnUnreadable, ScanOptions};
use super::read::{WHOLE_LEN_MAX, open, read_whole};
use super::shape::Shape;
use super::window::{Bounds, Maker, Next, Window};
use crate::{ConvertError, Sink, Skipped, Source, Streamed, random};

/// Threads that read where nothing else was asked for. They wait for the device most of the time, so their number
/// does not depend on that of the cores.
const READERS: usize = 16;
/// Bytes of files read ahead: 64 MiB. One file of [`WHOLE_LEN_MAX`] may come on top.
const AHEAD_BYTES: u64 = 64 << 20;
/// Files read ahead, so that a row of empty ones is bounded too.
const AHEAD_FILES: usize = 4096;
/// How long to wait for a file before the caller is asked again whether to stop.
const PATIENCE: Duration = Duration::from_millis(100);

/// The order in which samples are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// An order drawn from the seed; every order is equally likely.
    Shuffled {
        /// Where the order is drawn from.
        seed: u64,
    },
    /// By path, as bytes.
    Source,
}

/// How a folder is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolderOptions {
    /// The order in which samples are stored.
    pub order: Order,
    /// Only so many files: the first of the order. The classes are those of the whole folder.
    pub limit: Option<u64>,
    /// What to do about a file or folder that cannot be read, or a file that changes while it is read.
    pub on_unreadable: OnUnreadable,
    /// Threads that read; 16 where `None`. It changes no byte of the result.
    pub jobs: Option<NonZeroUsize>,
}

impl Default for FolderOptions {
    /// All files in the order drawn from seed 0; stops at the first that cannot be read.
    fn default() -> Self {
        Self { order: Order::Shuffled { seed: 0 }, limit: None, on_unreadable: OnUnreadable::Stop, jobs: None }
    }
}

/// A folder of plain files as a source: one file, one sample.
#[derive(Debug)]
pub struct FolderSource {
    listing: Listing,
    shape: Shape,
    /// The files in the order in which they are stored; `None` where that is the listing's.
    order: Option<Vec<usize>>,
    count: usize,
    on_unreadable: OnUnreadable,
    readers: usize,
}

/// What a reading thread makes of a file.
enum Content {
    Whole(Vec<u8>),
    /// Too long to be held.
    Long,
    Unreadable(io::Error),
}

impl FolderSource {
    /// Lists the folder `root`; no file is opened yet.
    ///
    /// # Errors
    /// Where it cannot be listed, or a path is too long to be a key.
    pub fn open(root: &Path, options: &FolderOptions) -> Result<Self, ConvertError> {
        let readers = options.jobs.map_or(READERS, NonZeroUsize::get);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(readers).build();
        let pool = pool.map_err(|error| ConvertError::Threads(error.to_string()))?;
        let scan = ScanOptions { on_unreadable: options.on_unreadable };
        let listing = pool.install(|| Listing::scan(root, scan))?;
        check_keys(&listing)?;
        let shape = Shape::of(&listing)?;
        let limit = options.limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let count = limit.min(listing.len());
        let order = match options.order {
            Order::Source => None,
            Order::Shuffled { seed } => Some(first_of(random::permutation(listing.len(), seed), count)),
        };
        Ok(Self { listing, shape, order, count, on_unreadable: options.on_unreadable, readers })
    }

    /// What was found in the folder.
    pub fn listing(&self) -> &Listing {
        &self.listing
    }

    /// Number of classes, where the folder has the shape of ImageNet.
    pub fn class_count(&self) -> Option<usize> {
        self.shape.class_count()
    }

    /// The number in the listing of the file that is stored at `position`.
    fn file_at(&self, position: usize) -> usize {
        self.order.as_ref().map_or(position, |order| order[position])
    }

    /// One thread's work: files of the positions that it begins, until there is none.
    fn read_ahead(&self, maker: &Maker<'_, Content>) {
        while let Some(position) = maker.begin() {
            let path = self.listing.path(self.file_at(position));
            let (len, content) = match open(&path) {
                Err(error) => (0, Content::Unreadable(error)),
                Ok((_, len)) if len > WHOLE_LEN_MAX => (0, Content::Long),
                Ok((file, len)) => {
                    if !maker.reserve(position, len) {
                        return;
                    }
                    (len, read_whole(file, len).map_or_else(Content::Unreadable, Content::Whole))
                }
            };
            maker.put(position, len, content);
        }
    }

    /// Pushes what the threads have read, in order.
    fn push_all(&self, window: &Window<Content>, sink: &mut Sink<'_>) -> Result<(), ConvertError> {
        for position in 0..self.count {
            let content = loop {
                match window.next(PATIENCE) {
                    Next::Item(content) => break content,
                    Next::NotYet => sink.check()?,
                    Next::End => return Err(ConvertError::Threads("all of them have ended".into())),
                }
            };
            self.push(self.file_at(position), content, sink)?;
        }
        Ok(())
    }

    fn push(&self, file: usize, content: Content, sink: &mut Sink<'_>) -> Result<(), ConvertError> {
        let error = match content {
            Content::Whole(payload) => return sink.write(self.sample(file, payload)),
            Content::Long => match self.push_long(file, sink)? {
                Streamed::Written => return Ok(()),
                Streamed::Failed(error) => error,
            },
            Content::Unreadable(error) => error,
        };
        let path = self.listing.path(file);
        match self.on_unreadable {
            OnUnreadable::Stop => Err(ConvertError::Unreadable { path, source: error }),
            OnUnreadable::Skip => sink.skip(Skipped { path, why: error.to_string() }),
        }
    }

    fn sample(&self, file: usize, payload: Vec<u8>) -> Sample {
        let (key, attributes) = (self.listing.relative_path(file).to_vec(), self.shape.attributes(file));
        Sample { key, attributes, payload, fields: Vec::new() }
    }

    fn push_long(&self, file: usize, sink: &mut Sink<'_>) -> Result<Streamed, ConvertError> {
        let (mut payload, len) = match open(&self.listing.path(file)) {
            Ok(opened) => opened,
            Err(error) => return Ok(Streamed::Failed(error)),
        };
        let Sample { key, attributes, fields, .. } = self.sample(file, Vec::new());
        sink.write_stream(&StreamedSample { key, attributes, fields, len }, &mut payload)
    }

    /// Starts the threads, all of them or as many as the system gives.
    fn start<'scope>(
        &'scope self,
        window: &'scope Window<Content>,
        scope: &'scope thread::Scope<'scope, '_>,
    ) -> Result<(), ConvertError> {
        for started in 0..self.readers.min(self.count) {
            let maker = window.maker();
            let thread = thread::Builder::new().name(format!("read-{started}"));
            match thread.spawn_scoped(scope, move || self.read_ahead(&maker)) {
                Err(error) if started == 0 => return Err(ConvertError::Threads(error.to_string())),
                Err(_) => return Ok(()),
                Ok(_) => {}
            }
        }
        Ok(())
    }
}

impl Source for FolderSource {
    fn origin(&self) -> &Path {
        self.listing.root()
    }

    fn metadata(&self) -> &Metadata {
        self.shape.metadata()
    }

    fn is_keyed(&self) -> bool {
        true
    }

    fn sample_count(&self) -> Option<u64> {
        Some(self.count as u64)
    }

    fn write_into(&mut self, sink: &mut Sink<'_>) -> Result<(), ConvertError> {
        for (path, why) in self.listing.unreadable() {
            sink.note_skipped(Skipped { path: path.clone(), why: why.clone() });
        }
        let bounds = Bounds { count: self.count, positions_max: AHEAD_FILES, bytes_max: AHEAD_BYTES };
        let window = Window::new(bounds);
        let source = &*self;
        thread::scope(|scope| {
            let result = source.start(&window, scope).and_then(|()| source.push_all(&window, sink));
            // Threads that wait for room would otherwise wait for ever.
            window.close();
            result
        })
    }
}

fn first_of(mut order: Vec<usize>, count: usize) -> Vec<usize> {
    order.truncate(count);
    order.shrink_to_fit();
    order
}

fn check_keys(listing: &Listing) -> Result<(), ConvertError> {
    let too_long = (0..listing.len()).find(|&file| listing.relative_path(file).len() > MAX_KEY_LEN);
    too_long.map_or(Ok(()), |file| {
        let (path, len): (PathBuf, usize) = (listing.path(file), listing.relative_path(file).len());
        Err(ConvertError::KeyTooLong { path, len })
    })
}
