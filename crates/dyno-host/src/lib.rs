//! A machine: its processes, its facts, and what its kernel reports; no databases. Processes that
//! Dyno starts are marked on disk, so that a later run can prove whose they are; it ends no others.

#![cfg_attr(
    test,
    allow(clippy::print_stderr, reason = "what a machine lacks is skipped, and says so")
)]

mod builds;
mod cgroup;
mod container;
mod copy;
mod doctor;
mod error;
mod facts;
mod keeper;
mod kernel;
mod kernel_text;
mod listener;
mod piped;
mod probe;
mod process_table;
mod register;
mod scheduling;
mod storage;
mod transfer;
mod volume;

pub use builds::{
    Build, BuildStore, FetchOrder, ListedBuild, Origin, PackageSpec, SourceInfo, distribution,
    file_digest, package_source_names, package_sources,
};
pub use container::{Engine, Image, LocalImage, Program};
pub use copy::{CopyError, CopyLayout, copy_folder, copy_new_folder, sync_folder};
pub use doctor::{BusyProcess, Check, CheckState, Snapshot, Symptoms, examine};
pub use error::KeeperError;
pub use facts::{Facts, boot_id, environment};
pub use keeper::{
    AfterCrash, Answer, FolderElsewhere, HowStopped, Keeper, KeptProcess, Place, ProcessSpec,
    RunAs, ServerLimits, Storage, last_lines, random_token, server_limit_problems,
    server_limits_in_force,
};
pub use kernel::{
    KernelSettings, drop_page_cache, kernel_setting_problem, kernel_settings, page_cache_problem,
};
pub use listener::{
    free_loopback_port, free_loopback_ports, free_ports, is_loopback, listener_of_port,
    listener_of_socket, listens_by_network, user_of_client,
};
pub use piped::{PipedProcess, Pipes};
pub use probe::{
    CommandProbe, DataFiles, Failures, FileKind, HOST_PROBES, HostSpec, ListedThread, Probe,
    ProbeCommand, ProcessGroup, Readings, Sampler, ThreadGroup, ThreadGroups, ThreadListing,
    USER_READINGS, host_readings, reading_name,
};
pub use process_table::{
    RunningProcess, ThreadIo, children_cpu, memory_of, own_cpu, own_rss_bytes, own_thread_io,
    thread_cpu, thread_io,
};
pub use register::{Hold, ListedDeployment, Register, Registered, RegisteredMember};
pub use scheduling::scheduling_group;
pub use storage::{folder_bytes, free_bytes, size_bytes};
pub use transfer::{receive_folder, send_folder};
pub use volume::{
    Backing, Dips, IoLimit, Volume, VolumeSpec, VolumeUsage, filesystems, volume_problems,
};

pub(crate) use cgroup::Groups;
pub(crate) use error::{OrKeeper, Result, if_there};
pub(crate) use facts::Host;
pub(crate) use process_table::{ProcessIdentity, ProcessStat};
pub(crate) use storage::Mount;
