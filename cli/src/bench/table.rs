//! The results of a bench, as a table for people: the device first, then the ways, a bar in each row.

use super::bars::{CELL_COUNT, Cells};
use super::pages::HugePages;
use super::report::{BenchReport, DeviceRow, WayRow};
use super::ways::Cache;
use crate::filesystem::FileSystem;
use crate::sizes::{shown_exact, shown_size};

/// A limit that differs by more than this between its two measurements causes a warning.
const DRIFT_MAX: f64 = 0.1;

/// The cells of a row, text on the left, numbers on the right.
#[derive(Default)]
struct TableRow {
    name: String,
    mb_per_s: String,
    per_s: String,
    read_len: String,
    cpu: String,
    bar: String,
    share: String,
}

impl TableRow {
    fn head(name: &str, per_s: &str, bar: &str) -> Self {
        Self {
            name: name.to_owned(),
            mb_per_s: "MB/s".to_owned(),
            per_s: per_s.to_owned(),
            read_len: "a read".to_owned(),
            cpu: "CPU-s/GB".to_owned(),
            bar: bar.to_owned(),
            share: String::new(),
        }
    }

    fn line(&self) -> String {
        let Self { name, mb_per_s, per_s, read_len, cpu, bar, share } = self;
        let line =
            format!("{name:<30} {mb_per_s:>8} {per_s:>10} {read_len:>9} {cpu:>9}  {bar:<CELL_COUNT$} {share:>5}");
        line.trim_end().to_owned()
    }
}

impl BenchReport {
    /// The table, one item per line.
    pub(crate) fn lines(&self, cells: Cells) -> Vec<String> {
        let fastest = self.device.iter().map(|row| row.mb_per_s).fold(0.0, f64::max);
        let mut lines = vec![self.dataset_line(), self.place_line(), self.device_line(), String::new()];
        lines.push(TableRow::head("what the device can do", "reads/s", "beside its fastest").line());
        lines.extend(self.device.iter().map(|row| device_row(row, fastest, cells).line()));
        lines.push(String::new());
        let bar = if self.direct { "of the device's limit" } else { "" };
        lines.push(TableRow::head("what grainstore does", "samples/s", bar).line());
        lines.extend(self.ways.iter().map(|row| self.way_row(row, cells).line()));
        lines.push(String::new());
        lines.extend(self.latencies());
        lines.extend(self.legend().iter().map(|&line| line.to_owned()));
        lines.extend(self.drift());
        lines
    }

    fn dataset_line(&self) -> String {
        let samples = self.samples;
        let size = shown_size(self.payload_bytes);
        format!("{}: {samples} samples, {size}, {} each", self.path, shown_size(self.mean_sample_bytes))
    }

    fn place_line(&self) -> String {
        let FileSystem { kind, device } = &self.file_system;
        format!("on {kind} ({device}); batches of {}, {} s a row", self.batch_size, self.limit_s)
    }

    fn device_line(&self) -> String {
        let memory = HugePages(self.huge_page_share).text();
        let engine = self.engine;
        let io = if self.direct { "direct reads" } else { "reads through the page cache" };
        let alone = self.device.iter().find(|row| row.depth == 1 && row.engine != engine);
        let alone = alone.map_or_else(String::new, |row| format!(", {} by {}", row.limit.letter(), row.engine));
        format!("device: {io} by {engine} into {memory}{alone}")
    }

    fn way_row(&self, row: &WayRow, cells: Cells) -> TableRow {
        let share = row.share_of_limit.zip(row.limit);
        let without = match row.cache {
            Cache::Warm => "from memory: no limit",
            Cache::Cold if !self.direct => "no limit is known",
            Cache::Cold => "",
        };
        TableRow {
            name: self.name(row),
            mb_per_s: format!("{:.0}", row.mb_per_s),
            per_s: format!("{:.0}", row.samples_per_s),
            read_len: shown_len(row.mean_request_bytes),
            cpu: shown_cpu(row.cpu_s_per_gb),
            bar: share.map_or_else(|| without.to_owned(), |(share, _)| cells.bar(share)),
            share: share
                .map_or_else(String::new, |(share, limit)| format!("{:>3.0} % of {}", share * 100.0, limit.letter())),
        }
    }

    /// A way is marked if direct reads were requested and refused.
    fn name(&self, row: &WayRow) -> String {
        match row.label.strip_suffix("direct") {
            Some(start) if row.io != "direct" => format!("{start}{}!", row.io),
            _ => row.label.to_owned(),
        }
    }

    fn latencies(&self) -> impl Iterator<Item = String> {
        self.ways.iter().filter_map(|row| {
            let latency = row.latency?;
            let p50 = shown_us(latency.p50_us);
            let p99 = shown_us(latency.p99_us);
            Some(format!("{}: half took {p50} us at most, 99 of 100 took {p99} us at most", self.name(row)))
        })
    }

    fn legend(&self) -> &'static [&'static str] {
        if self.direct {
            &["A reads extents, B samples, C samples one at a time: means of before and after the ways."]
        } else {
            &[
                "!: direct reads were refused, so what the device can do is not known;",
                "A, B, C are what the page cache can do.",
            ]
        }
    }

    fn drift(&self) -> Option<String> {
        let drifted = self.device.iter().filter(|row| self.direct && row.drift.abs() > DRIFT_MAX);
        let changes = drifted.map(|row| format!("{} {:+.0} %", row.limit.letter(), row.drift * 100.0));
        let changes: Vec<String> = changes.collect();
        let text =
            || format!("The device drifted meanwhile, and shares are uncertain by as much: {}.", changes.join(", "));
        (!changes.is_empty()).then(text)
    }
}

fn device_row(row: &DeviceRow, fastest: f64, cells: Cells) -> TableRow {
    let share = row.mb_per_s / fastest.max(1e-9);
    let depth = if row.depth == 1 { "one at a time".to_owned() } else { format!("{} at a time", row.depth) };
    TableRow {
        name: format!("{}  {} reads, {depth}", row.limit.letter(), shown_exact(row.request_bytes)),
        mb_per_s: format!("{:.0}", row.mb_per_s),
        per_s: format!("{:.0}", row.reads_per_s),
        read_len: shown_size(row.request_bytes),
        cpu: shown_cpu(row.cpu_s_per_gb),
        bar: cells.bar(share),
        share: format!("{:>3.0} %", share * 100.0),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the mean of lengths")]
fn shown_len(len: Option<f64>) -> String {
    len.map_or_else(|| "-".to_owned(), |len| shown_size(len.round() as u64))
}

/// Microseconds; short times, as for reads from memory, have one more digit.
fn shown_us(us: f64) -> String {
    if us < 10.0 { format!("{us:.1}") } else { format!("{us:.0}") }
}

fn shown_cpu(cpu: Option<f64>) -> String {
    cpu.map_or_else(|| "-".to_owned(), |cpu| format!("{cpu:.2}"))
}

#[cfg(test)]
mod tests {
    use super::super::limits::Limit;
    use super::super::ways::{Latency, WAYS};
    use super::*;

    fn device(limit: Limit, mb_per_s: f64, drift: f64) -> DeviceRow {
        DeviceRow {
            limit,
            request_bytes: 262_144,
            depth: 32,
            io: "direct",
            engine: "io_uring",
            reads_per_s: mb_per_s * 4.0,
            mb_per_s,
            cpu_s_per_gb: None,
            before_mb_per_s: mb_per_s,
            after_mb_per_s: mb_per_s,
            drift,
        }
    }

    fn way(label: &'static str, cache: Cache, share: Option<f64>) -> WayRow {
        WayRow {
            name: "",
            label,
            io: if share.is_some() { "direct" } else { "buffered" },
            cache,
            samples: 10,
            payload_bytes: 1000,
            elapsed_s: 1.0,
            samples_per_s: 10.0,
            mb_per_s: 600.0,
            mean_request_bytes: Some(262_143.6),
            cpu_s_per_gb: Some(0.5),
            latency: None,
            limit: share.map(|_| Limit::Extents),
            share_of_limit: share,
        }
    }

    fn report(direct: bool, ways: Vec<WayRow>) -> BenchReport {
        BenchReport {
            path: "tiny.grain".to_owned(),
            file_system: FileSystem { kind: "ext4".to_owned(), device: "/dev/sda1".to_owned() },
            samples: 10,
            payload_bytes: 1000,
            stored_bytes: 1000,
            mean_extent_bytes: 1000,
            mean_sample_bytes: 100,
            batch_size: 10,
            seed: 0,
            limit_s: 2.0,
            elapsed_s: 30.0,
            engine: "io_uring",
            huge_page_share: Some(0.0),
            direct,
            device: vec![device(Limit::Extents, 1200.0, 0.05), device(Limit::Samples, 300.0, -0.3)],
            ways,
        }
    }

    #[test]
    fn limits_and_ways_stand_in_the_same_columns_with_a_bar_each() {
        let latency = Some(Latency { p50_us: 0.44, p99_us: 100.0 });
        let warm = WayRow { latency, ..way("get, warm", Cache::Warm, None) };
        let lines = report(true, vec![way("epoch, direct", Cache::Cold, Some(0.5)), warm]).lines(Cells::Hashes);
        assert_eq!(
            lines.join("\n"),
            "\
tiny.grain: 10 samples, 1.0 kB, 100 B each
on ext4 (/dev/sda1); batches of 10, 2 s a row
device: direct reads by io_uring into plain pages

what the device can do             MB/s    reads/s    a read  CPU-s/GB  beside its fastest
A  256K reads, 32 at a time        1200       4800  262.1 kB         -  ################ 100 %
B  256K reads, 32 at a time         300       1200  262.1 kB         -  ####              25 %

what grainstore does               MB/s  samples/s    a read  CPU-s/GB  of the device's limit
epoch, direct                       600         10  262.1 kB      0.50  ########          50 % of A
get, warm                           600         10  262.1 kB      0.50  from memory: no limit

get, warm: half took 0.4 us at most, 99 of 100 took 100 us at most
A reads extents, B samples, C samples one at a time: means of before and after the ways.
The device drifted meanwhile, and shares are uncertain by as much: B -30 %."
        );
    }

    #[test]
    fn a_line_fits_100_columns_also_where_numbers_are_large() {
        let latency = Some(Latency { p50_us: 123_456.0, p99_us: 1_234_567.0 });
        let ways: Vec<WayRow> = WAYS
            .iter()
            .map(|known| WayRow { latency, mb_per_s: 123_456.0, ..way(known.label, known.cache, Some(1.0)) })
            .collect();
        let alone = DeviceRow { engine: "pread", depth: 1, ..device(Limit::OneSample, 123_456.0, 0.9) };
        for direct in [true, false] {
            let mut report = report(direct, ways.clone());
            (report.huge_page_share, report.batch_size) = (Some(0.5), 256);
            report.device.push(alone.clone());
            let lines = report.lines(Cells::Hashes);
            assert_eq!(lines.iter().find(|line| line.chars().count() > 100), None);
        }
    }

    #[test]
    fn a_way_that_was_refused_direct_reads_is_marked_and_explained() {
        let lines = report(false, vec![way("epoch, direct", Cache::Cold, None)]).lines(Cells::Hashes);
        let text = lines.join("\n");
        assert!(text.contains("\nepoch, buffered! ") && text.contains("no limit is known"), "{text}");
        assert!(text.contains("\n!: direct reads were refused") && !text.contains("drifted"), "{text}");
    }
}
