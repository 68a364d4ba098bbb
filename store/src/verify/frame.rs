//! Checks what does not depend on the contents of the sections: header, footer, directory, the checksums of all pages,
//! the zeros in between. spec.md: FIL, HDR, FTR, DIR, CON-5.

use grainstore_format::{
    BLOCK_LEN, CHECKSUM_PAGE_LEN, ChecksumList, FileKind, Fingerprint, Footer, Header, SectionRecord, to_usize,
};
use rayon::prelude::*;

use super::report::FileReport;
use crate::index::Frame;
use crate::index::section::Section;
use crate::open::{check_index_file, read_header};
use crate::{IndexMemory, StoreError};

/// Checksum pages that one thread reads at a time: a mebibyte.
const PAGES_AT_A_TIME: u64 = 16;
/// Bytes 8 to 20 of header and footer: version and feature bits. spec.md: FTR-3.
const FEATURES: std::ops::Range<usize> = 8..20;

/// Opens a file and checks its frame; `None` if it cannot be opened, which is reported.
pub(super) fn check_frame(report: &FileReport<'_>, path: &std::path::Path, kind: FileKind) -> Option<Frame> {
    let header = check_header(report, path, kind);
    let frame = match Frame::open(path, IndexMemory::Owned) {
        Ok(frame) => frame,
        Err(error) => {
            report.unreadable(None, error);
            return None;
        }
    };
    if let Some(header) = header {
        check_features(report, &frame, &header);
    }
    if kind == FileKind::Index
        && let Err(error) = check_index_file(&frame)
    {
        report.unreadable(None, error);
    }
    report.checked(BLOCK_LEN);
    check_sections(report, &frame);
    Some(frame)
}

/// Compares the fingerprint with the manifest. spec.md: FPR-1.
pub(super) fn check_fingerprint(report: &FileReport<'_>, frame: &Frame, expected: Fingerprint) {
    if frame.fingerprint != expected {
        report.damage(format!("its fingerprint is {}, the manifest has {expected}", frame.fingerprint));
    }
}

fn check_header(report: &FileReport<'_>, path: &std::path::Path, kind: FileKind) -> Option<Vec<u8>> {
    let bytes = match read_header(path) {
        Ok(bytes) => bytes,
        // Opening the frame meets the same error, and reports it.
        Err(StoreError::NotFound { .. } | StoreError::Mismatch { .. }) => return None,
        Err(error) => {
            report.unreadable(None, error);
            return None;
        }
    };
    match Header::decode(&bytes) {
        Ok(header) => {
            if header.kind != kind {
                report.at(0, "damaged header: it is an index where a segment was expected, or the other way around");
            }
            Some(bytes)
        }
        Err(error) => {
            report.at(0, error.to_string());
            None
        }
    }
}

/// spec.md: FTR-3
fn check_features(report: &FileReport<'_>, frame: &Frame, header: &[u8]) {
    let len = frame.file.len();
    let Some(footer) = report.readable(frame.file.read(len - Footer::LEN as u64..len)) else { return };
    if footer.get(FEATURES) != header.get(FEATURES) {
        report.damage("header and footer disagree on version or feature bits");
    }
}

/// Checks every page against its checksum, and the zeros after every section.
fn check_sections(report: &FileReport<'_>, frame: &Frame) {
    frame.sections().par_iter().for_each(|section| {
        if report.is_stopped() {
            return;
        }
        if let Err(error) = section.checksums(&frame.file) {
            report.unreadable(Some(section.record().checksums_offset()), error);
        }
        let pages = section.record().page_count();
        let shares = pages.div_ceil(PAGES_AT_A_TIME);
        (0..shares).into_par_iter().for_each(|share| {
            check_pages(report, frame, section, share * PAGES_AT_A_TIME..pages.min((share + 1) * PAGES_AT_A_TIME));
        });
        check_padding(report, frame, section.record());
    });
    let directory_end = frame.footer.directory_offset() + u64::from(frame.footer.directory_len());
    check_zeros(report, frame, directory_end..frame.file.len() - Footer::LEN as u64);
}

fn check_pages(report: &FileReport<'_>, frame: &Frame, section: &Section, pages: std::ops::Range<u64>) {
    if report.is_stopped() {
        return;
    }
    let record = section.record();
    let range = pages.start * CHECKSUM_PAGE_LEN..(pages.end * CHECKSUM_PAGE_LEN).min(record.len);
    report.checked(range.end - range.start);
    let bytes = match frame.file.read(record.offset + range.start..record.offset + range.end) {
        Ok(bytes) => bytes,
        Err(error) => return report.unreadable(Some(record.offset + range.start), error),
    };
    // A damaged list has been reported.
    let Ok(list) = section.checksums(&frame.file) else { return };
    for (page, bytes) in pages.zip(bytes.chunks(to_usize(CHECKSUM_PAGE_LEN))) {
        check_page(report, record, list, page, bytes);
    }
}

fn check_page(report: &FileReport<'_>, record: &SectionRecord, list: &ChecksumList, page: u64, bytes: &[u8]) {
    if let Err(error) = list.check_page(page, bytes) {
        report.at(record.offset + page * CHECKSUM_PAGE_LEN, format!("section {}: {error}", record.label()));
    }
}

/// Checks the bytes between a section and its checksums, and from there to the next block. spec.md: CON-5.
fn check_padding(report: &FileReport<'_>, frame: &Frame, record: &SectionRecord) {
    check_zeros(report, frame, record.offset + record.len..record.checksums_offset());
    check_zeros(report, frame, record.offset + record.storage_len()..record.next_offset());
}

/// Checks that a short range of the file is zero.
pub(super) fn check_zeros(report: &FileReport<'_>, frame: &Frame, range: std::ops::Range<u64>) {
    if range.is_empty() {
        return;
    }
    match frame.file.read(range.clone()) {
        Ok(bytes) => {
            if let Some(position) = bytes.iter().position(|&byte| byte != 0) {
                report.at(range.start + position as u64, "padding is not zero");
            }
        }
        Err(error) => report.unreadable(Some(range.start), error),
    }
}
