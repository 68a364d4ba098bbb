//! One thread reads ahead while another writes: a run is being read, or read and waiting, while one is written.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use crate::ExportError;
use crate::fetch::{Fetched, Row};
use crate::job::Job;
use crate::runs::Runs;

/// Hands the samples of `ordinals` to `take`, in order.
pub(crate) fn pass<'a>(
    job: &'a Job<'a>,
    ordinals: Box<dyn Iterator<Item = u64> + Send + 'a>,
    mut take: impl FnMut(&mut Row<'_>) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let runs = Runs::new(job.collection(), ordinals);
    thread::scope(|scope| {
        // Nothing is kept in between: the reading thread holds one run, the writing one another.
        let (sender, receiver) = sync_channel(0);
        let reading = thread::Builder::new().name("grain-export".into());
        let spawned = reading.spawn_scoped(scope, move || read(job, runs, &sender));
        spawned.map_err(|source| ExportError::Threads { source })?;
        for fetched in receiver {
            fetched?.each(job, &mut take)?;
        }
        Ok(())
    })
}

fn read(job: &Job<'_>, mut runs: Runs<'_>, sender: &SyncSender<Result<Fetched, ExportError>>) {
    loop {
        let next = job.go_on().and_then(|()| runs.next_run());
        let fetched = match next {
            Ok(Some(run)) => Fetched::read(job, run),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let is_last = fetched.is_err();
        // The writing thread is gone where it has failed.
        if sender.send(fetched).is_err() || is_last {
            return;
        }
    }
}
