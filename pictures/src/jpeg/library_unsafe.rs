//! The calls of libjpeg. Every function may unwind with a [`Failure`]; the library's memory is freed then, too.

use std::ffi::CStr;
use std::marker::PhantomData;
use std::panic::resume_unwind;

use mozjpeg_sys::{
    J_COLOR_SPACE, JPEG_LIB_VERSION, boolean, jpeg_CreateDecompress, jpeg_calc_output_dimensions, jpeg_common_struct,
    jpeg_crop_scanline, jpeg_decompress_struct, jpeg_destroy_decompress, jpeg_error_mgr, jpeg_mem_src,
    jpeg_progress_mgr, jpeg_read_header, jpeg_read_scanlines, jpeg_skip_scanlines, jpeg_start_decompress,
    jpeg_std_error,
};

use super::Failure;

/// Scans of a progressive picture. Real ones have about ten; each costs the time of a whole picture.
const SCANS_MAX: i32 = 200;

/// A picture that is being decoded from `'a` bytes.
pub(super) struct Library<'a> {
    /// The library keeps pointers to these: they stay where they are until they are dropped, after `Drop`.
    decompress: Box<jpeg_decompress_struct>,
    _error: Box<jpeg_error_mgr>,
    _progress: Box<jpeg_progress_mgr>,
    bytes: PhantomData<&'a [u8]>,
}

impl<'a> Library<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        // SAFETY: the structure has integers, pointers and optional functions, for which zeros are valid.
        let mut error: Box<jpeg_error_mgr> = Box::new(unsafe { std::mem::zeroed() });
        // SAFETY: it fills the structure that it is given.
        unsafe { jpeg_std_error(&mut error) };
        error.error_exit = Some(fail);
        error.emit_message = Some(ignore_message);
        error.output_message = Some(ignore);
        // SAFETY: as above.
        let mut progress: Box<jpeg_progress_mgr> = Box::new(unsafe { std::mem::zeroed() });
        progress.progress_monitor = Some(check_scans);
        // SAFETY: as above; its enumerations have a member 0.
        let mut decompress: Box<jpeg_decompress_struct> = Box::new(unsafe { std::mem::zeroed() });
        decompress.common.err = &raw mut *error;
        // SAFETY: the structure is zeroed and names its error handler, which lives as long.
        unsafe { jpeg_CreateDecompress(&raw mut *decompress, JPEG_LIB_VERSION, size_of::<jpeg_decompress_struct>()) };
        decompress.common.progress = &raw mut *progress;
        let mut library = Self { decompress, _error: error, _progress: progress, bytes: PhantomData };
        // SAFETY: the structure was created, and the bytes outlive it (`'a`).
        unsafe { jpeg_mem_src(&mut library.decompress, bytes.as_ptr(), bytes.len() as _) };
        // SAFETY: `jpeg_mem_src` made the source, which the library owns until the structure is destroyed.
        if let Some(source) = unsafe { library.decompress.src.as_mut() } {
            source.fill_input_buffer = Some(end_of_bytes);
        }
        library
    }

    /// Width and height.
    pub(super) fn read_header(&mut self) -> (u32, u32) {
        let require_image: boolean = 1;
        // SAFETY: the structure was created and has a source.
        unsafe { jpeg_read_header(&mut self.decompress, require_image) };
        (self.decompress.image_width, self.decompress.image_height)
    }

    /// Begins to decode to a fraction of the size. Returns whether pixels are four inks, and not three colours.
    pub(super) fn start(&mut self, reduce: u32) -> bool {
        let is_cmyk = matches!(self.decompress.jpeg_color_space, J_COLOR_SPACE::JCS_CMYK | J_COLOR_SPACE::JCS_YCCK);
        self.decompress.out_color_space = if is_cmyk { J_COLOR_SPACE::JCS_CMYK } else { J_COLOR_SPACE::JCS_RGB };
        self.decompress.scale_num = 8 / reduce;
        self.decompress.scale_denom = 8;
        // SAFETY: the header was read.
        unsafe { jpeg_calc_output_dimensions(&mut self.decompress) };
        // SAFETY: the header was read, and the options are those that the library documents.
        unsafe { jpeg_start_decompress(&mut self.decompress) };
        is_cmyk
    }

    /// Width and height of what is decoded.
    pub(super) fn output_size(&self) -> (u32, u32) {
        (self.decompress.output_width, self.decompress.output_height)
    }

    /// Decodes only columns from at or before `first`, at least `width` of them; returns which.
    pub(super) fn crop(&mut self, mut first: u32, mut width: u32) -> (u32, u32) {
        // SAFETY: decoding has begun and no row was read; the library checks that the columns are inside the picture.
        unsafe { jpeg_crop_scanline(&mut self.decompress, &mut first, &mut width) };
        (first, self.decompress.output_width)
    }

    pub(super) fn skip(&mut self, rows: u32) {
        if rows > 0 {
            // SAFETY: decoding has begun.
            unsafe { jpeg_skip_scanlines(&mut self.decompress, rows) };
        }
    }

    /// Decodes one row.
    pub(super) fn read_row(&mut self, row: &mut [u8]) {
        let len =
            self.decompress.output_width as usize * usize::try_from(self.decompress.output_components).unwrap_or(0);
        assert!(row.len() >= len, "a row has {} bytes, not {len}", row.len());
        let mut start = row.as_mut_ptr();
        // SAFETY: decoding has begun, and `row` has room for the one row that is requested.
        let count = unsafe { jpeg_read_scanlines(&mut self.decompress, &raw mut start, 1) };
        if count != 1 {
            resume_unwind(Box::new(Failure::Truncated));
        }
    }
}

impl Drop for Library<'_> {
    fn drop(&mut self) {
        // SAFETY: the structure was created, and is not used after this.
        unsafe { jpeg_destroy_decompress(&mut self.decompress) };
    }
}

unsafe extern "C-unwind" fn fail(common: &mut jpeg_common_struct) {
    // SAFETY: `Library` sets the error handler, which outlives every call of the library.
    let reason = unsafe { common.err.as_ref() }.and_then(|error| {
        let number = usize::try_from(error.msg_code).ok()?;
        if error.jpeg_message_table.is_null() || error.msg_code > error.last_jpeg_message {
            return None;
        }
        // SAFETY: the table has a text for each number up to `last_jpeg_message`.
        let text = unsafe { error.jpeg_message_table.add(number) };
        // SAFETY: it is inside the table.
        let text = unsafe { *text };
        // SAFETY: texts of the table are constants of the library that end with a zero.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text.cast()) }.to_string_lossy().into_owned())
    });
    resume_unwind(Box::new(Failure::Other(reason.unwrap_or_else(|| "it is invalid".into()))));
}

unsafe extern "C-unwind" fn ignore_message(_: &mut jpeg_common_struct, _: i32) {}

unsafe extern "C-unwind" fn ignore(_: &mut jpeg_common_struct) {}

unsafe extern "C-unwind" fn end_of_bytes(_: &mut jpeg_decompress_struct) -> boolean {
    resume_unwind(Box::new(Failure::Truncated));
}

unsafe extern "C-unwind" fn check_scans(common: &mut jpeg_common_struct) {
    let decompress = std::ptr::from_mut(common).cast::<jpeg_decompress_struct>();
    // SAFETY: the library calls this with the structure of `Library`, which begins with what all structures share.
    let scan = unsafe { (*decompress).input_scan_number };
    if scan > SCANS_MAX {
        resume_unwind(Box::new(Failure::Other(format!("it has more than {SCANS_MAX} scans"))));
    }
}
