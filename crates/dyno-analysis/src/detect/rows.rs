//! All caveats in their order: where each is found, what it says, and what it advises.

use super::found::Row;
use super::{
    alike, attempts, course, generator, hosts, machines, missed, noise, runs, steadiness, storage,
};
use crate::CaveatKind as Kind;

pub(super) const ROWS: &[Row] = &[
    (
        Kind::TooFewRepetitions,
        attempts::too_few_repetitions,
        "Fewer than 3 repetitions have finished: {}.",
        "Set `repetitions` in `[design]` to 3 or more: only the spread between repetitions shows \
         how much of a difference is noise.",
    ),
    (Kind::GeneratorLimit, generator::limit, "The load generator was {}.", ""),
    (
        Kind::HostLimit,
        hosts::limited,
        "Some load generators were near their limit: {}.",
        "Give these hosts more `workers` or CPUs, or spread the load over more hosts: what they \
         waited for is part of the response times.",
    ),
    (
        Kind::HostLag,
        hosts::lagging,
        "Some load generators sent their transactions later than the others: {}.",
        "Response times count from when a transaction was due, so they include this lag: check \
         what else runs on these hosts, and their network connections to the server.",
    ),
    (
        Kind::HostShare,
        hosts::uneven,
        "Some load generators did more or less than their share of the load: {}.",
        "The total is right, but it is not the load that one generator would make: compare the \
         hosts' CPUs, their lag and their network connections to the server.",
    ),
    (
        Kind::HostMissing,
        hosts::missing,
        "Some trials were loaded by fewer hosts than others: {}.",
        "The other hosts took over its part, so these trials differ in more than their variants: \
         repeat them when the host is back.",
    ),
    (
        Kind::HostClock,
        hosts::clocks,
        "The clocks of some load generators were off: {}.",
        "Response times are right, because each is taken from one clock; transactions may be \
         counted in the second before or after theirs. Use shorter steps, or a faster network to \
         these hosts.",
    ),
    (
        Kind::SeveralMachines,
        machines::differing,
        "Trials of the same variant ran on machines that differ. {}.",
        "Variants whose trials share a machine in each block are compared block by block, so that \
         these comparisons are not affected; but means and their CIs are over all these machines. \
         Give each kind of machine a [host.NAME] table of its own, and vary `trials_on`.",
    ),
    (
        Kind::SeveralMachines,
        machines::apart,
        "Variants that are compared ran on different machines: {}.",
        "The effect is that of the machine, and of all else that differs between them, such as \
         kernel, disk and neighbours. Machines of one type differ, too: several hosts in each \
         table show by how much.",
    ),
    (
        Kind::SeveralMachines,
        machines::split,
        "In {} a variant and its baseline ran on different hosts, because a host was lost.",
        "",
    ),
    (
        Kind::Errors,
        attempts::errors,
        "Some attempts failed, up to {}.",
        "Failing can be faster than working, so these numbers may be too good. Fix the cause and \
         run again.",
    ),
    (
        Kind::DeadEnd,
        attempts::dead_end,
        "Nothing committed at the end of {}.",
        "Transactions that were still waiting have no response time, and average throughput \
         includes the time in which nothing committed. Find out why the server stopped answering \
         before you use these numbers.",
    ),
    (
        Kind::Throttled,
        attempts::throttled,
        "A limit of CPU time stopped the server again and again: {}.",
        "Throughput and response times there are those of the limit, which stops all threads until \
         its next period (usually 100 ms): raise it (`cpu` of pods) or remove it, unless it is \
         what you measure.",
    ),
    (Kind::MissedArrivals, missed::arrivals, "{}", ""),
    (
        Kind::Unserved,
        attempts::unserved,
        "Clients waited in the pooler for at least half of the measured time: {}.",
        "Throughput and response times there are those of the clients that were served. A pool in \
         mode `session` serves as many clients as it has connections: raise `pool_size`, or choose \
         mode `transaction`.",
    ),
    (
        Kind::DifferentDurability,
        alike::durability,
        "Commits are not equally safe: {}.",
        "Configure the same durability for both, or publish the difference with the result.",
    ),
    (
        Kind::InMemory,
        storage::in_memory,
        "The data were in memory {}.",
        "A sync costs nothing there, and nothing survives a power failure: use such a variant to \
         see what the disk costs, not as a configuration to run.",
    ),
    (
        Kind::NotOnDisk,
        storage::fuse,
        "The filesystem runs in user space {}.",
        "What a sync reaches, and whether O_DIRECT bypasses a cache, depends on its program. Use \
         an in-kernel filesystem to measure a disk.",
    ),
    (
        Kind::NotOnDisk,
        storage::loop_cache,
        "The device is an image file that is accessed through the page cache: {}.",
        "Operations that bypass the page cache of the filesystem still go through that of the \
         image file. Put the image on a filesystem that has direct I/O, or use a device.",
    ),
    (
        Kind::NotOnDisk,
        storage::page_cache,
        "Writes went to the page cache and were not synced: {}.",
        "Their rate and response times are those of memory, until the kernel writes back. Use \
         direct = true, or sync.",
    ),
    (
        Kind::NotOnDisk,
        storage::disk_cache,
        "Direct writes were not synced, and the device has a write cache: {}.",
        "O_DIRECT does not flush the device's cache: a write may be only in the device's memory, \
         and be lost in a power failure. Databases sync after it; add sync = \"fdatasync\" to see \
         what that costs.",
    ),
    (
        Kind::NotOnDisk,
        storage::too_fast,
        "More syncs per second per client than {}.",
        "Either a cache answers (in a controller, a hypervisor, or a drive that does not flush), \
         or the kernel is wrong about the disk, as it often is in virtual machines. Do not \
         conclude that a commit survives a power failure unless you know that this cache does.",
    ),
    (
        Kind::UserSpace,
        storage::user_space,
        "The data were on zfs-fuse, not on the kernel's ZFS: {}.",
        "Record size, copy-on-write and compression work as in ZFS; speed does not: the kernel's \
         page cache lies above and below it, and a sync ends in user space. Compare variants on \
         zfs-fuse with each other, not with other filesystems.",
    ),
    (
        Kind::StoredUncompressed,
        storage::uncompressed,
        "The filesystem compresses, but stored most of the data uncompressed: {}",
        "The server preallocates space for its files, and btrfs does not compress what is written \
         into a file after space was preallocated in it. Files that were copied without \
         preallocating are compressed until the server extends them: data = \"restored\" for the \
         database.",
    ),
    (
        Kind::MissingTrials,
        attempts::missing_trials,
        "Of {}.",
        "Read the server's log of the failed trials, then start the same run again to do the \
         missing ones.",
    ),
    (
        Kind::AuditFailed,
        attempts::audit,
        "After the load, the tables of {}.",
        "Do not use these numbers until this is explained: a server that loses work looks faster \
         than it is. Look for a storage engine without transactions, for another writer to the \
         same tables (a job of the study, for one), and for a bug in the server or the workload.",
    ),
    (Kind::ShortMeasurement, attempts::short, "The {} are not affected.", ""),
    (
        Kind::WarmUpTooShort,
        steadiness::warm_up,
        "The first measured seconds were still warm-up: {}.",
        "",
    ),
    (
        Kind::NotSteady,
        steadiness::not_steady,
        "Throughput changed during the measurement: {}.",
        "Another period might have a different mean. See the charts by second; lengthen `warm_up` \
         until throughput is level, or `duration` until it covers several ups and downs.",
    ),
    (
        Kind::NeverSteady,
        steadiness::never_steady,
        "Throughput was not steady even at the end: {}.",
        "There was no steady state, so the mean depends on how long you measure. Read the charts \
         by second rather than the means, or measure for longer.",
    ),
    (
        Kind::Stalls,
        steadiness::stalls,
        "Throughput stalled: {}.",
        "The estimates include the stalls. The list of stalls shows which readings of server and \
         machine moved first: evidence of where to look, not proof.",
    ),
    (
        Kind::UnsettledSearch,
        steadiness::searches,
        "Some searches are incomplete: {}.",
        "If no load met the limit, choose one that a single transaction can meet. If the search \
         stopped at the highest load, its value is a lower bound: raise `clients`. If probes \
         contradict each other, increase `duration`.",
    ),
    (
        Kind::DifferentMemory,
        alike::memory,
        "The engines have different amounts of memory for data. {}.",
        "Give both the same memory for data (`innodb_buffer_pool_size`, `shared_buffers`, \
         `cache_size`), or publish the difference with the result.",
    ),
    (
        Kind::DifferentBuilders,
        alike::builders,
        "The servers were built by different builders. {}.",
        "Compilers, libraries and build options differ as well, so the effect is not that of the \
         version alone. Take all versions from one builder (`from`), or mention both with the \
         result.",
    ),
    (
        Kind::DifferentProtocol,
        alike::protocols,
        "The servers were reached in different ways. {}.",
        "The connection is part of every response time and uses CPU on both sides. Use the same \
         kind for both; if one database runs inside the generator's process, mention it with the \
         result.",
    ),
    (
        Kind::DifferentScheduling,
        alike::scheduling,
        "The kernel schedules the servers in different groups. {}.",
        "Where server and generator compete for CPUs, that alone can change throughput by half: \
         start all servers in the same way (all by Dyno, or all as services), switch groups of \
         sessions off (`sysctl kernel.sched_autogroup_enabled=0`), or give server and generator \
         CPUs of their own (`server_cpus`).",
    ),
    (
        Kind::DifferentTls,
        alike::encryption,
        "Connections are encrypted on one side only. {}.",
        "Encryption costs CPU on both sides: use it for both or for neither, or read the effect as \
         its price.",
    ),
    (
        Kind::DataChangedSize,
        alike::sizes,
        "The data set changed size during the measurement: on disk, {}.",
        "",
    ),
    (Kind::UnexpectedCaching, alike::caches, "{}", ""),
    (
        Kind::SequentialOrder,
        course::sequential_order,
        "Variants were measured one after the other, so any drift of the machine looks like an \
         effect of the variant.",
        "Use `order = \"interleaved\"`. METHOD.md shows how often a drift of 2 % causes a false \
         alarm otherwise.",
    ),
    (
        Kind::Drift,
        course::drift,
        "Throughput of all variants together changed by {}.",
        "Something is drifting: a disk that fills up, the temperature, or a noisy neighbour, for \
         example. Comparisons within blocks cancel it; the CIs of individual variants are wider \
         because of it.",
    ),
    (Kind::NoisyHost, noise::noisy_host, "The host was busy with other work: {}.", ""),
    (
        Kind::ServerRestarted,
        steadiness::restarts,
        "The server restarted or was unavailable during {}.",
        "Do not use these numbers: caches were cold and recovery ran. Read the server's log for \
         the cause.",
    ),
    (
        Kind::UnfinishedQuota,
        |seen| steadiness::ended_by(seen, "limit"),
        "Steps that end when their work is done reached their time limit first: {}. The steps \
         after them ran on less data than intended.",
        "Allow the step more time, or give it less to do. Its rate covers only the work that was \
         done; its time cannot be compared.",
    ),
    (
        Kind::UnfinishedQuota,
        |seen| steadiness::ended_by(seen, "unsteady"),
        "Steps that end when throughput is steady reached their time limit first: {}.",
        "Raise `until_steady`, or find out what keeps changing: a cache that fills, deferred work \
         that grows, a period longer than `duration`.",
    ),
    (
        Kind::NotCaughtUp,
        steadiness::backlogs,
        "The engine had not caught up with its deferred work: {}.",
        "Deferred work (flushing, purge, compaction) is missing from the numbers of the load that \
         caused it, and slows down what comes next. Allow more time between steps, or look at the \
         charts of deferred work over time.",
    ),
    (
        Kind::NotSettled,
        course::open_verdicts,
        "The run ended before every verdict was decided: {} repetitions.",
        "Start the run again if trials are missing. Otherwise raise `repetitions`, the time \
         `budget` or the `threshold`.",
    ),
    (
        Kind::DriftingDifferences,
        course::drifting_differences,
        "Differences between variants drift, which pairing by block does not cancel: {}.",
        "Look for something that affects variants unequally over time: a table that grows, a cache \
         that fills, throttling. A drift within blocks cancels over two blocks in opposite order, \
         so use an even number of repetitions.",
    ),
    (
        Kind::OneDataSet,
        runs::one_data_set,
        "Each {}.",
        "Two data sets with the same contents may be laid out differently, and that difference is \
         not in the confidence intervals: if data sets have a standard deviation of 1 %, about 18 \
         of 100 studies with 5 repetitions have a false positive, and more with 10. Set `reuse = \
         false` to populate anew in each trial.",
    ),
    (
        Kind::SeparateRuns,
        runs::separate,
        "The two runs were measured one after the other and are not paired by block: whatever \
         changed on the machine between them looks like an effect.",
        "Run both builds in the same blocks (`dyno gate OLD NEW`). METHOD.md says how often a gate \
         fails because the machine was 2 % slower in one of the runs.",
    ),
    (Kind::NoisyHost, noise::discarded, "{}", ""),
    (
        Kind::LawMisses,
        steadiness::law_misses,
        "At some loads the fitted scaling curve lies outside the measured CI. {}.",
        "Use the measured values; ignore the parameters and the peak of the fit. The Universal \
         Scalability Law cannot describe a hard cap on throughput.",
    ),
    (
        Kind::DifferentWorkload,
        runs::workloads,
        "These variants did different work and are not compared: {}.",
        "Give both runs the same workload with the same options. To compare workloads or options, \
         vary them in one study.",
    ),
    (
        Kind::DifferentSteps,
        runs::steps,
        "The runs have different load levels. {}.",
        "Compare only at load levels that both have: averages and peaks come from different loads. \
         Run the missing load levels.",
    ),
    (
        Kind::Imported,
        runs::imported,
        "These results are read from the output of {}",
        "Compare runs that alternated on one machine. `dyno sysbench` and `dyno pgbench` take the \
         same command lines and record all of this.",
    ),
    (
        Kind::Simulated,
        |seen| generator::servers(seen, |server| server.simulated),
        "Everything was simulated: nothing real was measured.",
        "This only shows how the study runs; for real numbers, run it against a real system.",
    ),
    (
        Kind::Simulated,
        |seen| generator::servers(seen, |server| !server.stores_data && !server.simulated),
        "The server answered at once and stored nothing: this measures the load generator, not a \
         database.",
        "Read throughput as the generator's limit on this machine, and response times as what it \
         adds to those of a database.",
    ),
];
