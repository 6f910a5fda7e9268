//! Files, in Dyno's own process: a volume under load, without a server. To read its numbers:
//!
//! - Each client has a thread and one operation in flight, a blocking `pread` or `pwrite` (fio's
//!   engine `psync`, sysbench's `--file-io-mode=sync`), so the number of clients is the queue depth.
//!   io_uring is not used: all safe interfaces to it allocate for each operation, and Dyno has no
//!   unsafe code. Many threads reach the depth that one has with io_uring, at the cost of their
//!   switches.
//! - Memory for direct I/O is aligned to 4096 bytes and made before the load.
//! - Some filesystems accept O_DIRECT and ignore it: btrfs for files with checksums or compression,
//!   zfs-fuse and tmpfs always.
//! - Buffered reads meet what filling the files left in the page cache.
//! - `sync_file_range` is not offered: it flushes neither the disk's cache nor metadata, so nothing
//!   is safe after it, and no library offers it without unsafe code.

mod aligned;
mod connection;
mod product;
mod work;

pub(crate) use product::FAMILY;

#[cfg(test)]
mod tests;
