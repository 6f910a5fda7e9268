//! The keys with which a study declares a workload, for its parser and for the schema.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredKey {
    pub name: &'static str,
    pub value: DeclaredValue,
    pub is_needed: bool,
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclaredValue {
    /// A whole number of at least this, which may be written as `"100k"`.
    Count(u64),
    /// A whole number in this range, both ends included.
    Whole(i64, i64),
    Number,
    Switch,
    True,
    Text,
    /// A text, or one for each of the [`DIALECTS`].
    PerDialect,
    /// A number, a text or a switch.
    Constant,
    Constants,
    /// A table of texts.
    Mapped,
    Texts,
    TextLists,
    Wholes,
    TwoTexts,
    /// A whole number, or two.
    Length,
    /// Two bounds, each a number or the name of a table; or one such name instead of both.
    Bounds,
    /// A whole number, or the name of a table.
    First,
    /// A share: `"10%"` or `0.1`.
    Share,
    /// A number of rows: `1`, `"0..1"`, `"1.."`.
    Rows,
    /// A duration, or `{ exponential = … }` with one: [`THINK`].
    Think,
    Columns,
    /// A constant, or a table with one of [`GENERATORS`].
    Generator,
    /// Generators by the names of the values that they draw.
    Generators,
    Steps,
}

/// A generator: the key that names it, and those that may stand beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeclaredGenerator {
    pub key: DeclaredKey,
    pub beside: &'static [DeclaredKey],
}

pub const DIALECTS: [&str; 3] = ["mysql", "postgresql", "sqlite"];

use DeclaredValue as V;

/// A table: `[workload.NAME.table.TABLE]`.
pub const TABLE: &[DeclaredKey] = &[
    needed("rows", V::Count(0), "The number of rows it is filled with; may be 0."),
    may("scaled", V::Switch, "False: `scale` does not multiply its rows."),
    needed("columns", V::Columns, "The columns, in order."),
    may("indexes", V::TextLists, "Lists of columns, an index for each, made when it is filled."),
    may(
        "unique",
        V::TextLists,
        "Lists of columns, a unique index for each, made when it is filled.",
    ),
];

pub const COLUMN: &[DeclaredKey] = &[
    needed("type", V::PerDialect, "Its type in the database's own syntax, with any constraints."),
    may("key", V::Switch, "True: part of the primary key."),
    may("identity", V::Switch, "True: assigned by the server if the row has none."),
    may("value", V::Generator, "Its generator; without one, the column's default, or NULL."),
];

/// A transaction: `[workload.NAME.transaction.KIND]`.
pub const TRANSACTION: &[DeclaredKey] = &[
    may("weight", V::Count(0), "Its share among the transactions; 1 if not given."),
    may("begin", V::Switch, "Whether its statements form one transaction of the database."),
    may("let", V::Generators, "Values that are drawn when it begins."),
    needed("steps", V::Steps, "What it does, in this order."),
    may("think", V::Think, "How long the client pauses after it."),
];

pub const STEP: &[DeclaredKey] = &[
    may("sql", V::PerDialect, "A statement, with `:name` for values."),
    may("roll_back", V::Switch, "In place of `sql`, true: rolls the transaction back."),
    may("if", V::Text, "The step is executed only if this expression is true."),
    may("times", V::Count(1), "How often it is executed; 1 if not given."),
    may("let", V::Generators, "Values that are drawn for the step each time."),
    may("read", V::Texts, "Names for the columns of the first row, in their order."),
    may("rows", V::Rows, "How many rows are expected: 1, \"0..1\", \"1..\"."),
];

pub const THINK: &[DeclaredKey] =
    &[needed("exponential", V::Text, "The mean of exponentially distributed pauses.")];

/// The key that every generator may have beside it.
pub const NULL: DeclaredKey = may("null", V::Share, "The share of NULLs.");

const DECIMALS: DeclaredKey =
    may("decimals", V::Whole(0, 9), "The number of decimal places; none if not given.");

pub const GENERATORS: &[DeclaredGenerator] = &[
    generator(
        needed("sequence", V::First, "Numbers starting at this one; of a table, after its rows."),
        &[
            may("step", V::Whole(i64::MIN, i64::MAX), "The distance between two numbers."),
            may(
                "after",
                V::Text,
                "A column, `table.column`: each trial goes on from its largest value.",
            ),
        ],
    ),
    generator(needed("uniform", V::Bounds, "Numbers, uniformly distributed."), &[DECIMALS]),
    generator(
        needed("zipf", V::Bounds, "Numbers by Zipf's law: the lowest is the most frequent."),
        &[may("theta", V::Number, "The exponent; 0.99 if not given.")],
    ),
    generator(
        needed("normal", V::Bounds, "Numbers of a normal distribution, cut off at the bounds."),
        &[
            may("mean", V::Number, "The mean; the middle of the bounds if not given."),
            may("deviation", V::Number, "The standard deviation."),
            DECIMALS,
        ],
    ),
    generator(
        needed("text", V::Text, "A text: # is a digit, @ a letter, {name} another value."),
        &[],
    ),
    generator(needed("letters", V::Length, "So many random letters."), &[]),
    generator(needed("uuid", V::True, "A random UUID (version 4)."), &[]),
    generator(needed("date", V::TwoTexts, "A day between the two, as text."), &[]),
    generator(needed("timestamp", V::TwoTexts, "A second between the two."), &[]),
    generator(
        needed("one_of", V::Constants, "One of them."),
        &[may("weights", V::Wholes, "How often each of them is drawn.")],
    ),
    generator(needed("lines", V::Text, "A line of this file."), &[]),
    generator(needed("expression", V::Text, "The value of an expression of pgbench."), &[]),
    generator(
        needed("map", V::Mapped, "The entry for the value of another column or name."),
        &[
            needed("of", V::Text, "The column or name."),
            may("otherwise", V::Constant, "Where there is no entry; NULL if not given."),
        ],
    ),
];

const fn needed(name: &'static str, value: DeclaredValue, help: &'static str) -> DeclaredKey {
    DeclaredKey { name, value, is_needed: true, help }
}

const fn may(name: &'static str, value: DeclaredValue, help: &'static str) -> DeclaredKey {
    DeclaredKey { name, value, is_needed: false, help }
}

const fn generator(key: DeclaredKey, beside: &'static [DeclaredKey]) -> DeclaredGenerator {
    DeclaredGenerator { key, beside }
}
