//! Makes a ring, or explains in one sentence why there is none.

use std::io;

use io_uring::{IoUring, Probe, opcode};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::UringOwner;
use super::engine::NAME;
use crate::EngineError;

/// Capacity of the submission queue: the most reads that one system call submits.
pub(super) const SUBMISSIONS_MAX: u32 = 256;
/// Capacity of the completion queue. It is locked memory, of which a user may be allowed only a small amount.
pub(super) const COMPLETIONS_MAX: u32 = 1024;

/// How the kernel does its part of the work, by the features that this needs.
#[derive(Debug, Clone, Copy)]
enum RingMode {
    /// It may interrupt the thread.
    Plain,
    /// A completion waits for the next system call instead of interrupting. Since Linux 5.19.
    CoopTaskrun,
    /// A completion waits until the single issuer waits for completions. That is the thread that enables the ring,
    /// which need not be the one that makes it. Since Linux 6.1.
    SingleIssuer,
}

/// Makes the best ring that the kernel supports. One with a single issuer has to be enabled by that thread.
pub(super) fn ring(owner: UringOwner) -> Result<IoUring, EngineError> {
    let modes: &[RingMode] = match owner {
        UringOwner::OneThread => &[RingMode::SingleIssuer, RingMode::CoopTaskrun],
        UringOwner::AnyThread => &[RingMode::CoopTaskrun],
    };
    let unknown = |built: &io::Result<IoUring>| built.as_ref().is_err_and(|error| is(error, Errno::INVAL));
    let built = modes.iter().map(|&mode| build(mode)).find(|built| !unknown(built));
    let ring = built.unwrap_or_else(|| build(RingMode::Plain)).map_err(refusal)?;
    check(&ring)?;
    Ok(ring)
}

fn build(mode: RingMode) -> io::Result<IoUring> {
    let mut builder = IoUring::builder();
    builder.setup_cqsize(COMPLETIONS_MAX);
    match mode {
        RingMode::Plain => &mut builder,
        RingMode::CoopTaskrun => builder.setup_coop_taskrun().setup_taskrun_flag(),
        RingMode::SingleIssuer => {
            builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_r_disabled()
        }
    };
    builder.build(SUBMISSIONS_MAX)
}

fn check(ring: &IoUring) -> Result<(), EngineError> {
    let params = ring.params();
    if !(params.is_feature_nodrop() && params.is_feature_ext_arg() && params.is_feature_submit_stable()) {
        return Err(refused("io_uring of this kernel is too old: it cannot wait with a timeout (needs Linux 5.11)"));
    }
    // What blocks one of the three system calls need not block the others.
    match ring.submit() {
        // The ring is not enabled yet.
        Err(error) if is(&error, Errno::BADFD) && ring.params().is_setup_single_issuer() => {}
        answer => drop(answer.map_err(refusal)?),
    }
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).map_err(refusal)?;
    let needed = [opcode::Read::CODE, opcode::ReadFixed::CODE, opcode::AsyncCancel::CODE];
    if !needed.into_iter().all(|code| probe.is_supported(code)) {
        return Err(refused("io_uring of this kernel does not support reads, or they are blocked"));
    }
    Ok(())
}

fn refusal(error: io::Error) -> EngineError {
    if is(&error, Errno::PERM) || is(&error, Errno::ACCESS) {
        refused("io_uring is blocked (seccomp or kernel.io_uring_disabled)")
    } else if is(&error, Errno::NOSYS) {
        refused("this kernel has no io_uring")
    } else if is(&error, Errno::NOMEM) {
        refused(&format!("there is no memory for an io_uring: RLIMIT_MEMLOCK allows a user {}", memory_limit()))
    } else if is(&error, Errno::INVAL) {
        refused("io_uring of this kernel is too old: it does not let the completion queue be sized (needs Linux 5.11)")
    } else {
        EngineError::Start { engine: NAME, source: error }
    }
}

/// How much memory a user may lock.
pub(super) fn memory_limit() -> String {
    match getrlimit(Resource::Memlock).current {
        Some(len) => format!("{len} bytes"),
        None => "any number of bytes".into(),
    }
}

fn refused(why: &str) -> EngineError {
    EngineError::Refused { why: why.into() }
}

fn is(error: &io::Error, errno: Errno) -> bool {
    error.raw_os_error() == Some(errno.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_is_not_available_is_refused_with_the_reason() {
        for (errno, why) in [
            (Errno::PERM, "io_uring is blocked (seccomp or kernel.io_uring_disabled)"),
            (Errno::ACCESS, "io_uring is blocked (seccomp or kernel.io_uring_disabled)"),
            (Errno::NOSYS, "this kernel has no io_uring"),
            (Errno::NOMEM, "there is no memory for an io_uring: RLIMIT_MEMLOCK allows a user "),
        ] {
            let error = refusal(errno.into());
            assert!(matches!(error, EngineError::Refused { .. }));
            assert!(error.to_string().starts_with(why), "{error}");
        }
        assert!(matches!(refusal(Errno::MFILE.into()), EngineError::Start { .. }));
    }
}
