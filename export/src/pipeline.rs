//! One thread reads ahead while another writes: while one group is written, the next is being read or is ready.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use crate::ExportError;
use crate::fetch::{ExportedSample, Fetched};
use crate::job::ExportJob;
use crate::read_groups::ReadGroups;

/// Passes the samples of `ordinals` to `take`, in order.
pub(crate) fn pass<'a>(
    job: &'a ExportJob<'a>,
    ordinals: Box<dyn Iterator<Item = u64> + Send + 'a>,
    mut take: impl FnMut(&mut ExportedSample<'_>) -> Result<(), ExportError>,
) -> Result<(), ExportError> {
    let groups = ReadGroups::new(job.collection(), ordinals);
    thread::scope(|scope| {
        // The channel holds nothing: the reading thread has one group, the writing thread another.
        let (sender, receiver) = sync_channel(0);
        let reading = thread::Builder::new().name("grain-export".into());
        let spawned = reading.spawn_scoped(scope, move || read(job, groups, &sender));
        spawned.map_err(|source| ExportError::Threads { source })?;
        for fetched in receiver {
            fetched?.each(job, &mut take)?;
        }
        Ok(())
    })
}

fn read(job: &ExportJob<'_>, mut groups: ReadGroups<'_>, sender: &SyncSender<Result<Fetched, ExportError>>) {
    loop {
        let next = job.go_on().and_then(|()| groups.next_group());
        let fetched = match next {
            Ok(Some(group)) => Fetched::read(job, group),
            Ok(None) => return,
            Err(error) => Err(error),
        };
        let is_last = fetched.is_err();
        // The receiver is gone if the writing thread has failed.
        if sender.send(fetched).is_err() || is_last {
            return;
        }
    }
}
