//! Seeds of whole datasets: each as it is, then each kind of change with each repair.

use super::change::{ANYWHERE, FLIP, FOOTER, HEADER, RESIZE, WRITE_2, WRITE_4, WRITE_8};
use super::repair::REPAIRS;
use crate::seeds::Named;

// Regions after the footer, of the first file of fixture 0.
const DIRECTORY: u8 = FOOTER + 1;
const SAMPLES: u8 = FOOTER + 2;
const ENTRIES: u8 = FOOTER + 4;
const KEYS: u8 = FOOTER + 8;

/// The seeds of [`super::open`].
pub(crate) fn changed_datasets() -> Named {
    let mut seeds: Named = (0..4).map(|fixture| (format!("whole_{fixture}"), vec![fixture])).collect();
    for change in CHANGES {
        for (number, repair) in REPAIRS.iter().enumerate() {
            let repair_name = format!("{repair:?}").to_lowercase();
            seeds.push((format!("{}_{repair_name}", change.name), change.input(number as u8)));
        }
    }
    seeds
}

/// One change of one file.
struct ChangeSeed {
    name: &'static str,
    fixture: u8,
    file: u8,
    region: u8,
    action: u8,
    offset: u16,
    value: &'static [u8],
}

impl ChangeSeed {
    /// A change of the first file of fixture 0.
    const fn new(name: &'static str, region: u8, action: u8, offset: u16, value: &'static [u8]) -> Self {
        Self { name, fixture: 0, file: 0, region, action, offset, value }
    }

    const fn in_file(self, fixture: u8, file: u8) -> Self {
        Self { fixture, file, ..self }
    }

    fn input(&self, repair_number: u8) -> Vec<u8> {
        let first = repair_number << 2 | self.fixture;
        let place = self.region << 3 | self.action;
        [&[first, self.file, place][..], &self.offset.to_le_bytes(), self.value].concat()
    }
}

const CHANGES: [ChangeSeed; 12] = [
    ChangeSeed::new("header_byte", HEADER, FLIP, 21, &[3]),
    ChangeSeed::new("footer_word", FOOTER, WRITE_4, 20, &[1, 0, 0, 0]),
    ChangeSeed::new("directory_number", DIRECTORY, WRITE_8, 8, &[255, 255, 0, 0, 0, 0, 0, 0]),
    ChangeSeed::new("data_byte", SAMPLES, FLIP, 1000, &[1]),
    ChangeSeed::new("entry_length", ENTRIES, WRITE_2, 24, &[9, 0]),
    ChangeSeed::new("entry_offset", ENTRIES, WRITE_4, 32, &[0, 0, 1, 0]),
    // The last sample, moved a little: it ends after the data, or begins inside the one before.
    ChangeSeed::new("last_entry_bit_0", ENTRIES, FLIP, 17 * 16, &[1]),
    ChangeSeed::new("last_entry_bit_1", ENTRIES, FLIP, 17 * 16, &[2]),
    ChangeSeed::new("key_byte", KEYS, FLIP, 3, &[1]),
    // The low bits of `resize`: how many blocks; the next ones: whether they are cut off or added.
    ChangeSeed::new("cut", ANYWHERE, RESIZE, 0, &[1]),
    ChangeSeed::new("grown", ANYWHERE, RESIZE, 0, &[5]).in_file(1, 1),
    ChangeSeed::new("last_file", ANYWHERE, FLIP, 70, &[1]).in_file(1, 3),
];
