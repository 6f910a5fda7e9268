//! Kinds of transactions and checked options of TPC-C.

use dyno_model::{OptionError, OptionSpec};

use crate::options::{Options, count, refuse, switch, word};

pub(super) const KINDS: [&str; 5] =
    ["new_order", "payment", "order_status", "delivery", "stock_level"];

pub(super) const NEW_ORDER: usize = 0;
pub(super) const PAYMENT: usize = 1;
pub(super) const ORDER_STATUS: usize = 2;
pub(super) const DELIVERY: usize = 3;
pub(super) const STOCK_LEVEL: usize = 4;

/// Districts of a warehouse, and terminals of it.
pub(super) const DISTRICTS: u64 = 10;

/// Most warehouses of a set: their numbers have nine digits in what procedures are given.
const WAREHOUSES_MAX: u64 = 1_000_000;

/// Most table sets: each connection prepares the statements of all of them.
const SETS_MAX: u64 = 100;

pub(super) const OPTIONS: &[OptionSpec] = &[
    count("warehouses", "1", 1, WAREHOUSES_MAX)
        .help("warehouses of each table set; each is about 100 MB"),
    count("tables", "1", 1, SETS_MAX).help(
        "table sets, with a number from 1 in their names if there are several; clients are spread \
         over them",
    ),
    word("size", &["full", "small"]).help(
        "items, customers and orders of a warehouse: the specification's, or a fiftieth of them \
         (not TPC-C, but enough to try a study out)",
    ),
    word("mode", &["unpaced", "paced", "open"]).help(
        "one transaction after another (or open, if there is a rate); with keying and think \
         times; open only",
    ),
    switch("home", true).help(
        "each client is a terminal of one warehouse; `off` draws a warehouse for each transaction \
         (not TPC-C, but what go-tpc and sysbench-tpcc do)",
    ),
    word("mix", &["weights", "deck"])
        .help("45/43/4/4/4 drawn independently, or shuffled decks of 10/10/1/1/1 cards"),
    switch("procedures", false)
        .help("one call of a stored procedure for each transaction (MariaDB, MySQL, PostgreSQL)"),
    switch("batched", false).help(
        "one statement for all items, one for all stock and one for all lines of an order, as \
         go-tpc sends them",
    ),
    switch("pipelined", false).help(
        "statements that do not need each other's replies are sent together, which saves round \
         trips (MariaDB, MySQL, PostgreSQL)",
    ),
    switch("sort_lines", true)
        .help("lines of an order take stock in key order, which avoids deadlocks"),
    switch("foreign_keys", false)
        .help("the ten foreign keys of the schema (MariaDB, MySQL, PostgreSQL)"),
    word("consistency", &["before-and-after", "after", "none"])
        .help("when the twelve consistency conditions are checked; each check reads all tables"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Unpaced,
    Paced,
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consistency {
    BeforeAndAfter,
    After,
    None,
}

/// A deviation that the audit must find; for tests of the audit alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    NeverRemote,
    FlatSkew,
    SkipsDistricts,
    NeverRollsBack,
    NeverByName,
    ForgetsStock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) items: u64,
    /// Customers of a district, and orders that it begins with.
    pub(super) customers: u64,
    /// Orders of a district, its last, that are not delivered in the beginning.
    pub(super) undelivered: u64,
    pub(super) names: u64,
}

impl Sizes {
    pub(super) const FULL: Sizes =
        Sizes { items: 100_000, customers: 3000, undelivered: 900, names: 1000 };

    /// A fiftieth, if size does not matter.
    pub(super) const SMALL: Sizes =
        Sizes { items: 2000, customers: 60, undelivered: 18, names: 20 };
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    pub(super) warehouses: u64,
    pub(super) sets: u64,
    pub(super) mode: Mode,
    pub(super) has_home: bool,
    pub(super) has_deck: bool,
    pub(super) has_procedures: bool,
    pub(super) is_batched: bool,
    pub(super) is_pipelined: bool,
    pub(super) sorts_lines: bool,
    pub(super) has_foreign_keys: bool,
    pub(super) consistency: Consistency,
    pub(super) fault: Option<Fault>,
    pub(super) sizes: Sizes,
}

impl Settings {
    pub(super) fn read(options: &Options) -> Result<Settings, OptionError> {
        let settings = Settings {
            warehouses: options.in_range("warehouses")?,
            sets: options.in_range("tables")?,
            mode: options.meaning("mode", [Mode::Unpaced, Mode::Paced, Mode::Open]),
            has_home: options.switch("home"),
            has_deck: options.text("mix") == "deck",
            has_procedures: options.switch("procedures"),
            is_batched: options.switch("batched"),
            is_pipelined: options.switch("pipelined"),
            sorts_lines: options.switch("sort_lines"),
            has_foreign_keys: options.switch("foreign_keys"),
            consistency: options.meaning(
                "consistency",
                [Consistency::BeforeAndAfter, Consistency::After, Consistency::None],
            ),
            fault: None,
            sizes: options.meaning("size", [Sizes::FULL, Sizes::SMALL]),
        };
        settings.checked()
    }

    fn checked(self) -> Result<Settings, OptionError> {
        if self.mode == Mode::Paced && !self.has_home {
            let reason = "`off` cannot be combined with mode `paced`, in which each client is a \
                          terminal of one warehouse; leave out one of the two";
            return refuse("home", reason);
        }
        if self.has_procedures && self.is_batched {
            let reason = "`on` cannot be combined with procedures, which send one statement for \
                          each transaction anyway; leave out one of the two";
            return refuse("batched", reason);
        }
        if self.has_procedures && self.is_pipelined {
            let reason = "`on` cannot be combined with procedures, which take one round trip for \
                          each transaction anyway; leave out one of the two";
            return refuse("pipelined", reason);
        }
        Ok(self)
    }

    pub(super) fn n_terminals(&self) -> u64 {
        self.sets * self.warehouses * DISTRICTS
    }

    pub(super) fn has_fault(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}
