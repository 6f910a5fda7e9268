//! Files, in Dyno's own process: what a volume does under a load, with no server above it.
//!
//! What an expert must know to read its numbers:
//!
//! - Each client has a thread of its own and one operation in flight, a `pread` or `pwrite` that
//!   blocks (fio's engine `psync`, sysbench's `--file-io-mode=sync`). So the number of clients is the
//!   queue depth. io_uring is not used: all safe interfaces to it allocate for each operation, and
//!   Dyno has no unsafe code. What one thread can do with it at great depth, this does with many
//!   threads, at the price of their switches.
//! - Memory for operations past the page cache is aligned to 4096 bytes and made before the load.
//! - A filesystem may take O_DIRECT and not follow it: btrfs goes through the page cache for files
//!   with checksums or compression, zfs-fuse and tmpfs always do.
//! - Buffered reads meet what filling the files left in the page cache.
//! - There is no call here for `sync_file_range`: it flushes no disk's cache and no metadata, so that
//!   nothing is safe after it, and no library offers it without unsafe code.

mod aligned;
mod connection;
mod product;
mod work;

pub(crate) use product::FAMILY;

#[cfg(test)]
mod tests;
