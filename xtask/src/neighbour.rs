//! `cargo xtask neighbour`: disturbs the machine in bursts, as on a shared host, until its input ends.

use std::hash::{BuildHasher, RandomState};
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::Context;

/// In milliseconds, for bursts and pauses.
const LONGEST_MS: u64 = 6_000;
/// For each synced write.
const WRITE_BYTES: usize = 1 << 20;

pub(crate) struct Neighbour(Child);

impl Neighbour {
    pub(crate) fn start() -> anyhow::Result<Neighbour> {
        let own = std::env::current_exe().context("cannot find this program")?;
        let child = Command::new(own)
            .arg("neighbour")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start the neighbour")?;
        Ok(Neighbour(child))
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        // It ends with its input, unless it is in a sync.
        drop(self.0.stdin.take());
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Differs between processes.
fn below(limit: u64) -> u64 {
    // The standard library's hash keys are random.
    RandomState::new().hash_one(limit) % limit
}

/// Computes in bursts and syncs a megabyte now and then, until the input ends.
#[expect(clippy::disallowed_methods, reason = "it disturbs in real time")]
pub(crate) fn disturb() -> anyhow::Result<()> {
    let (open, over) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        // Closes the channel, which ends the neighbour.
        drop(open);
    });
    let is_over = || over.try_recv() == Err(TryRecvError::Disconnected);
    let path = std::env::temp_dir().join(format!("dyno-neighbour-{}", std::process::id()));
    let mut file = std::fs::File::create_new(&path).context("cannot make a file to sync")?;
    // An open file needs no name: nothing stays behind, however the process ends.
    std::fs::remove_file(&path).context("cannot remove the name of the file to sync")?;
    let block = vec![7_u8; WRITE_BYTES];
    while !is_over() {
        let until = Instant::now() + Duration::from_millis(below(LONGEST_MS));
        let is_writing = below(3) == 0;
        let mut sum = 0_u64;
        while Instant::now() < until && !is_over() {
            sum = (0..200_000_u64).fold(sum, |sum, i| sum.wrapping_mul(31).wrapping_add(i));
            if is_writing {
                file.set_len(0)?;
                file.write_all(&block)?;
                file.sync_data()?;
            }
        }
        std::hint::black_box(sum);
        let pause = Duration::from_millis(below(LONGEST_MS));
        if over.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
            break;
        }
    }
    Ok(())
}
